package attack

import (
	"context"
	"crypto/x509"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/dtls/v3/pkg/crypto/selfsign"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// strangersHello returns the ClientHello of a client with a certificate of its own.
func strangersHello(t *testing.T) []byte {
	t.Helper()
	own, err := selfsign.GenerateSelfSigned()
	if err != nil {
		t.Fatal(err)
	}
	sink, from := listenUDP(t, "127.0.0.1"), listenUDP(t, "127.0.0.1")
	conn, err := dtls.ClientWithOptions(from, sink.LocalAddr(), dtls.WithCertificates(own), dtls.WithInsecureSkipVerify(true),
		dtls.WithVerifyPeerCertificate(func([][]byte, [][]*x509.Certificate) error { return nil }),
		dtls.WithSRTPProtectionProfiles(dtls.SRTP_AES128_CM_HMAC_SHA1_80))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_ = conn.HandshakeContext(ctx) // nobody answers
	_ = conn.Close()
	b := make([]byte, 2048)
	_ = sink.SetReadDeadline(time.Now().Add(5 * time.Second))
	n, err := sink.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

func listenUDP(t *testing.T, host string) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(host)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// sprayHellos sends a ClientHello to every media port until stop is called, fifty times a second. They come from another address and from
// other ports of the telephones' address. After two values of rounds, all ports that were open before have got one.
func sprayHellos(t *testing.T, s *rig.Server) (rounds <-chan struct{}, stop func()) {
	t.Helper()
	round := make(chan struct{})
	hello, ports := strangersHello(t), fixture.UDPPorts(t, s)
	senders := []*net.UDPConn{listenUDP(t, "127.66.6.12"), listenUDP(t, "127.0.0.1"), listenUDP(t, "127.0.0.1")}
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		defer close(round)
		for n := 0; n < 10_000; n++ {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			if n%5 == 0 {
				select {
				case round <- struct{}{}:
				default:
				}
				ports, _ = fixture.OpenUDPPorts(s)
			}
			for _, port := range ports {
				for _, from := range senders {
					_, _ = from.WriteToUDP(hello, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
				}
			}
		}
	}()
	return round, sync.OnceFunc(func() { close(done); <-over })
}

// Strangers begin a DTLS handshake at the media ports before the telephone does. The fingerprint in the signalling decides
// whose handshake counts, and the call has its audio.
func TestDTLS_StrangersFirst(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech})
	o := fixture.NewOrg(s)
	ada, bob := o.AddUser("Ada"), o.AddUser("Bob")
	network := s.BadNetwork(rig.Damage{})
	caller := o.Phone(ada, fixture.AdaTone, rig.PhoneOptions{Encrypt: "dtls_srtp", Through: network})
	callee := o.Phone(bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
	rounds, stop := sprayHellos(t, s)
	defer stop()
	release := network.Hold() // the telephone's own handshake comes after those of the strangers
	caller.Dial(bob.Extension)
	for range 3 {
		<-rounds
	}
	release()
	caller.Listen(3 * time.Second)
	callee.Listen(3 * time.Second)
	stop()
	caller.Do("hangup", "")
	callee.Wait("CALL_CLOSED", "")
	fixture.Hears(t, "Ada", fixture.ReadWAV(t, caller.Close()).PCM[0], fixture.BobTone, 2*time.Second)
	fixture.Hears(t, "Bob", fixture.ReadWAV(t, callee.Close()).PCM[0], fixture.AdaTone, 2*time.Second)
}
