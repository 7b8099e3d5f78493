package sip_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/resolve"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/sip/transport"
)

// testCertificate creates a certificate and the roots that verify it.
func testCertificate(t testing.TB, host string) (transport.TLSConfig, *x509.CertPool) {
	t.Helper()
	cert, certPEM, _, err := transport.SelfSigned(host)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certPEM)
	return transport.TLSConfig{Addr: "127.0.0.1:0", Config: &tls.Config{Certificates: []tls.Certificate{cert}}}, roots
}

func tlsURI(p *testServer, user string) string {
	return fmt.Sprintf("sip:%s@%s;transport=tls", user, p.TLSAddr())
}

func TestTLS_OneConnectionBothDirections(t *testing.T) {
	t.Parallel()
	conf, roots := testCertificate(t, "127.0.0.1")
	callee := newTestServer(t, sip.Config{TLS: conf})
	caller := newTestServer(t, sip.Config{RootCAs: roots})
	a, b := newEventLog(), newEventLog()
	leg, err := caller.Server.Invite(context.Background(), sip.Outgoing{URI: tlsURI(callee, "bob"), SDP: testOfferSDP}, a.record)
	if err != nil {
		t.Fatal(err)
	}
	in := callee.wantInbound(t)
	if in.Transport != sipmsg.TLS {
		t.Errorf("the call came by %s", in.Transport)
	}
	in.Listen(b.record)
	in.Answer(testAnswerSDP)
	wantEvent[sip.Answered](t, a)
	wantEvent[sip.Acked](t, b)
	go in.Leg().Info(context.Background(), "text/plain", []byte("back"))
	wantEvent[sip.Info](t, a).Respond(200)
	leg.Bye(sip.Reason{})
	wantEvent[sip.Bye](t, b)
	wantEvent[sip.Closed](t, a)
	if n := callee.Stats().Connections + caller.Stats().Connections; n != 2 {
		t.Errorf("%d ends of connections, want the two of one", n)
	}
}

func TestTLS_PeerNameVerified(t *testing.T) {
	t.Parallel()
	conf, roots := testCertificate(t, "carrier.example")
	callee := newTestServer(t, sip.Config{TLS: conf})
	for name, pool := range map[string]*x509.CertPool{"another name": roots, "unknown authority": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			caller := newTestServer(t, sip.Config{RootCAs: pool})
			e := newEventLog()
			caller.Server.Invite(context.Background(), sip.Outgoing{URI: tlsURI(callee, "bob"), SDP: testOfferSDP}, e.record)
			if f := wantEvent[sip.Failed](t, e); f.Status != 503 {
				t.Errorf("failed with %d", f.Status)
			}
		})
	}
	t.Cleanup(func() {
		if n := len(callee.calls); n > 0 {
			t.Errorf("%d calls came", n)
		}
	})
}

func TestTLS_SIPSNeverInClear(t *testing.T) {
	t.Parallel()
	conf, roots := testCertificate(t, "127.0.0.1")
	callee := newTestServer(t, sip.Config{TLS: conf})
	caller := newTestServer(t, sip.Config{RootCAs: roots})
	e := newEventLog()
	caller.Server.Invite(context.Background(), sip.Outgoing{URI: "sips:bob@" + callee.TLSAddr().String(), SDP: testOfferSDP}, e.record)
	in := callee.wantInbound(t)
	if in.Transport != sipmsg.TLS || !strings.HasPrefix(in.Header("Contact"), "<sip") {
		t.Errorf("came by %s with Contact %s", in.Transport, in.Header("Contact"))
	}
	in.Reject(486, "", 0)
	wantEvent[sip.Failed](t, e)
	_, err := caller.Server.Invite(context.Background(), sip.Outgoing{
		URI: "sips:bob@" + callee.Addr().String(), NextHop: resolve.Target{Host: callee.Addr().String(), Transport: sipmsg.UDP},
		SDP: testOfferSDP,
	}, e.record)
	if err == nil {
		t.Error("a sips URI was sent over UDP")
	}
}

func TestTLS_OldVersionRefused(t *testing.T) {
	t.Parallel()
	conf, roots := testCertificate(t, "127.0.0.1")
	server := newTestServer(t, sip.Config{TLS: conf})
	_, err := tls.Dial("tcp", server.TLSAddr().String(), &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS10,
		MaxVersion: tls.VersionTLS11})
	if err == nil {
		t.Error("TLS 1.1 was accepted")
	}
}

func TestListen_IPv6(t *testing.T) {
	t.Parallel()
	book := newFakeDirectory()
	book.trunks = []netip.Addr{netip.IPv6Loopback(), netip.MustParseAddr("127.0.0.1")}
	both := newTestServer(t, sip.Config{Addr: "127.0.0.1:0,[::1]:0", Accounts: book})
	six := newTestServer(t, sip.Config{Addr: "[::1]:0"})
	four := newTestServer(t, sip.Config{})
	for _, transport := range []sipmsg.Transport{sipmsg.UDP, sipmsg.TCP} {
		for _, far := range []*testServer{six, four} {
			e, f := newEventLog(), newEventLog()
			leg, err := both.Server.Invite(context.Background(), sip.Outgoing{
				URI: far.uri("bob"), NextHop: resolve.Target{Host: far.Addr().String(), Transport: transport}, SDP: testOfferSDP,
			}, e.record)
			if err != nil {
				t.Fatal(err)
			}
			in := far.wantInbound(t)
			if got := in.Source.Addr(); got != far.Addr().Addr() {
				t.Errorf("%s to %s came from %s", transport, far.Addr(), got)
			}
			if c := in.Header("Contact"); !strings.Contains(c, netip.AddrPortFrom(far.Addr().Addr(), both.Addr().Port()).String()) {
				t.Errorf("%s to %s has %s", transport, far.Addr(), c)
			}
			in.Listen(f.record)
			in.Answer(testAnswerSDP)
			wantEvent[sip.Answered](t, e)
			wantEvent[sip.Acked](t, f)
			in.Leg().Bye(sip.Reason{})
			wantEvent[sip.Bye](t, e)
			wantEvent[sip.Closed](t, f)
			_ = leg
		}
	}
}

func TestListen_DualStack(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{Addr: "[::]:0"})
	for _, host := range []string{"127.0.0.1", "::1"} {
		at := netip.AddrPortFrom(netip.MustParseAddr(host), server.Addr().Port())
		client := newTestServer(t, sip.Config{Addr: netip.AddrPortFrom(at.Addr(), 0).String()})
		e, f := newEventLog(), newEventLog()
		client.Server.Invite(context.Background(), sip.Outgoing{URI: "sip:bob@" + at.String(), SDP: testOfferSDP}, e.record)
		in := server.wantInbound(t)
		in.Listen(f.record)
		in.Answer(testAnswerSDP)
		wantEvent[sip.Answered](t, e)
		wantEvent[sip.Acked](t, f)
		in.Leg().Bye(sip.Reason{})
		wantEvent[sip.Bye](t, e)
	}
}

func TestListen_SeveralAddressesOnePort(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{Addr: "0.0.0.0:0, [::]:0"})
	for _, network := range []string{"127.0.0.1", "::1"} {
		client := newTestServer(t, sip.Config{Addr: netip.AddrPortFrom(netip.MustParseAddr(network), 0).String()})
		e := newEventLog()
		client.Server.Invite(context.Background(), sip.Outgoing{URI: "sip:bob@" +
			netip.AddrPortFrom(netip.MustParseAddr(network), server.Addr().Port()).String(), SDP: testOfferSDP}, e.record)
		server.wantInbound(t).Reject(486, "", 0)
		wantEvent[sip.Failed](t, e)
	}
}

// Another TLS implementation, which verifies our certificate.
func TestTLS_OpenSSLClient(t *testing.T) {
	t.Parallel()
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("openssl is not installed")
	}
	cert, certPEM, _, err := transport.SelfSigned("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	server := newTestServer(t, sip.Config{TLS: transport.TLSConfig{Addr: "127.0.0.1:0",
		Config: &tls.Config{Certificates: []tls.Certificate{cert}}}})
	roots := filepath.Join(t.TempDir(), "roots.pem")
	os.WriteFile(roots, certPEM, 0o600)
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	c := exec.CommandContext(ctx, openssl, "s_client", "-connect", server.TLSAddr().String(), "-CAfile", roots, "-verify_ip", "127.0.0.1", "-verify_return_error", "-quiet")
	in, _ := c.StdinPipe()
	out, _ := c.StdoutPipe()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	io.WriteString(in, strings.Replace(webSocketOptions(7), "CSeq: 1 OPTIONS\r\n", "CSeq: 1 OPTIONS\r\nContent-Length: 0\r\n", 1))
	line, err := bufio.NewReader(out).ReadString('\n')
	if !strings.HasPrefix(line, "SIP/2.0 200") {
		t.Errorf("openssl got %q, %v", line, err)
	}
	in.Close()
	cancel()
	c.Wait()
}
