package attack

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// dialFrom connects from an address of this machine.
func dialFrom(t *testing.T, from, to string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 10 * time.Second}
	c, err := d.Dial("tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// isOpen reports whether a connection is still open after a short time.
func isOpen(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := c.Read(make([]byte, 1))
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// halfOpen begins TLS handshakes from an address and completes none. It returns the connections.
func halfOpen(t *testing.T, from, to string, n int) (all []net.Conn) {
	t.Helper()
	for range n {
		c := dialFrom(t, from, to)
		_, _ = c.Write([]byte{22, 3, 1, 1, 0, 1, 0}) // the beginning of a ClientHello
		all = append(all, c)
	}
	return all
}

func openOf(all []net.Conn) (n int) {
	for _, c := range all {
		if isOpen(c) {
			n++
		}
	}
	return n
}

// wantLimited waits until the limit of connections holds while the first connection of all is open. Without a limit the first
// connection ends first, with the time for its handshake.
func wantLimited(t *testing.T, what string, first net.Conn, limited func() bool) {
	t.Helper()
	holds := false
	rig.Until(t, "the limit of "+what, 5*time.Second, func() bool {
		holds = limited() && isOpen(first)
		return holds || !isOpen(first)
	})
	if !holds {
		t.Errorf("no limit of %s: they ended only with the time for a handshake", what)
	}
}

// Neither bytes that are no TLS, nor old versions, nor handshakes that never end keep a telephone from its TLS.
func TestTLS_PhonesUnharmed(t *testing.T) {
	t.Parallel()
	own := rig.NewCertificate(t)
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech, Flags: own.ListenFlags()})
	o := &fixture.Office{Org: fixture.NewOrg(s)}
	o.Ada, o.Bob = o.AddUser("Ada"), o.AddUser("Bob")
	secure := rig.PhoneOptions{Transport: "tls", Authority: own.Authority, Auto: true}
	ada := o.Phone(o.Ada, fixture.AdaTone, secure)

	plain := dialFrom(t, "127.66.7.1", s.SIPS)
	_, _ = plain.Write([]byte("OPTIONS sip:x SIP/2.0\r\nVia: SIP/2.0/TLS 127.66.7.1;branch=z9hG4bKp\r\n\r\n"))
	_ = plain.SetReadDeadline(time.Now().Add(10 * time.Second))
	answer := make([]byte, 1000)
	if n, err := plain.Read(answer); errors.Is(err, os.ErrDeadlineExceeded) || strings.Contains(string(answer[:n]), "SIP/2.0") {
		t.Errorf("bytes without TLS got %q, %v", answer[:n], err)
	}
	old := tls.Client(dialFrom(t, "127.66.7.2", s.SIPS), &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10,
		MaxVersion: tls.VersionTLS11})
	if err := old.Handshake(); err == nil {
		t.Error("TLS 1.1 is accepted")
	}
	other := tls.Client(dialFrom(t, "127.66.7.3", s.SIPS), &tls.Config{InsecureSkipVerify: true, ServerName: "other.example"})
	if err := other.Handshake(); err != nil {
		t.Errorf("a name that is not ours: %v", err)
	} else if c := other.ConnectionState().PeerCertificates[0]; c.Subject.CommonName != "127.0.0.1" {
		t.Errorf("a name that is not ours gets the certificate of %s", c.Subject.CommonName)
	}

	far := halfOpen(t, "127.66.7.4", s.SIPS, 200)
	near := halfOpen(t, "127.0.0.1", s.SIPS, 700) // at the address of the telephones
	wantLimited(t, "connections from an unknown address", far[0], func() bool { return openOf(far) <= 64 })
	wantLimited(t, "connections at an address with telephones", far[0], func() bool { return openOf(near) <= 512 })

	bob := o.Phone(o.Bob, fixture.BobTone, secure)
	ada.Dial(o.Bob.Extension)
	o.HearsOnly("Ada", ada, fixture.BobTone)
	o.HearsOnly("Bob", bob, fixture.AdaTone)
	ada.Do("hangup", "")
	bob.Wait("CALL_CLOSED", "")
	rig.Until(t, "the end of the handshakes that nobody completes", 15*time.Second, func() bool { return openOf(far)+openOf(near) == 0 })
}
