package media

import (
	"context"
	"crypto/x509"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/pion/dtls/v3"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/sdp"
)

// dtlsLeg returns a leg that awaits a DTLS handshake from a phone with a certificate.
func dtlsLeg(t *testing.T, phone net.PacketConn, c *certificate) *Stream {
	t.Helper()
	leg := openStream(t, testEngine(t, Config{}, newLoop))
	leg.SetRemote(Remote{Addr: phone.LocalAddr().(*net.UDPAddr).AddrPort(), Formats: g711Formats(codec.PCMU, 101)})
	f := sdp.Fingerprint{Hash: "sha-256"}
	f.Value = f.Digest(c.tls.Certificate[0])
	a := &sdp.Agreement{Security: sdp.WebRTC, Mux: true, Fingerprints: []sdp.Fingerprint{f}}
	leg.applySecurity(a)
	leg.startICEAndDTLS(a)
	return leg
}

func newTestCertificate(t *testing.T) *certificate {
	t.Helper()
	c, err := newCertificate(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// shakeHands runs the handshake of a client.
func shakeHands(t *testing.T, from net.PacketConn, to netip.AddrPort, c *certificate, limit time.Duration) error {
	t.Helper()
	conn, err := dtls.ClientWithOptions(from, net.UDPAddrFromAddrPort(to), dtls.WithCertificates(c.tls), dtls.WithInsecureSkipVerify(true),
		dtls.WithVerifyPeerCertificate(func([][]byte, [][]*x509.Certificate) error { return nil }),
		dtls.WithSRTPProtectionProfiles(dtls.SRTP_AEAD_AES_128_GCM), dtls.WithFlightInterval(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	err = conn.HandshakeContext(ctx)
	t.Cleanup(func() { _ = conn.Close() })
	return err
}

// clientHello returns the first packet of a handshake.
func clientHello(t *testing.T, c *certificate) []byte {
	t.Helper()
	sink, b := rawSocket(t, "127.0.0.1"), make([]byte, maxPacket)
	_ = shakeHands(t, rawSocket(t, "127.0.0.1"), sink.LocalAddr().(*net.UDPAddr).AddrPort(), c, 50*time.Millisecond)
	_ = sink.SetReadDeadline(time.Now().Add(patience))
	n, err := sink.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

// Others on the phone's host send a ClientHello before the phone does. The signalled fingerprint decides.
func TestDTLS_StrangersFirst(t *testing.T) {
	t.Parallel()
	phone, own, foreign := rawSocket(t, "127.0.0.1"), newTestCertificate(t), newTestCertificate(t)
	leg := dtlsLeg(t, phone, own)
	stranger := rawSocket(t, "127.0.0.1")
	if err := shakeHands(t, stranger, leg.Local(), foreign, 5*time.Second); err == nil {
		buf := make([]byte, maxPacket) // the client ends its handshake before the server refuses its certificate
		_ = stranger.SetReadDeadline(time.Now().Add(patience))
		_, _ = stranger.Read(buf)
	}
	hello := clientHello(t, foreign)
	for range maxDTLSBegun + 10 { // they say no more than this
		_, _ = rawSocket(t, "127.0.0.1").WriteToUDPAddrPort(hello, leg.Local())
	}
	waitFor(t, "the strangers counted", func() bool {
		leg.in.mu.Lock()
		defer leg.in.mu.Unlock()
		return leg.in.dtls.begun >= maxDTLSBegun && len(leg.in.dtls.attempts) <= maxDTLSAttempts && !leg.in.dtls.complete
	})
	if err := shakeHands(t, phone, leg.Local(), own, patience); err != nil {
		t.Fatalf("the phone: %v", err)
	}
	waitFor(t, "the keys of the phone", func() bool {
		leg.in.mu.Lock()
		defer leg.in.mu.Unlock()
		return leg.in.dtls.complete && leg.in.decryptor != nil
	})
	if to := leg.Stats().Remote; to != phone.LocalAddr().(*net.UDPAddr).AddrPort() {
		t.Errorf("media goes to %v", to)
	}
	leg.Close()
}

// A stranger's certificate gives no keys, and leaves the phone its turn.
func TestDTLS_StrangerAloneGetsNoKeys(t *testing.T) {
	t.Parallel()
	phone, own, foreign := rawSocket(t, "127.0.0.1"), newTestCertificate(t), newTestCertificate(t)
	leg := dtlsLeg(t, phone, own)
	before := leg.Stats().Remote
	_ = shakeHands(t, rawSocket(t, "127.0.0.1"), leg.Local(), foreign, 2*time.Second)
	waitFor(t, "its attempt over", func() bool {
		leg.in.mu.Lock()
		defer leg.in.mu.Unlock()
		return leg.in.dtls.begun == 1 && len(leg.in.dtls.attempts) == 0
	})
	if to := leg.Stats().Remote; to != before || leg.in.decryptor != nil {
		t.Errorf("media goes to %v", to)
	}
}
