package sip_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/resolve"
)

// refuses is a Targets that refuses one address.
type refuses netip.Addr

var errRefused = errors.New("refused")

func (r refuses) CheckTarget(a netip.AddrPort) error {
	if a.Addr() == netip.Addr(r) {
		return errRefused
	}
	return nil
}

func listenAt(t *testing.T, host string) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(host)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// A name that leads to a refused address, and the address itself, get no request.
func TestInvite_RefusedTarget(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{Targets: refuses(netip.MustParseAddr("127.0.0.9"))})
	for _, uri := range []string{"sip:a@127.0.0.9", "sip:a@[::ffff:127.0.0.9]", "sip:a@127.0.0.9;transport=tcp"} {
		if _, err := server.Server.Invite(context.Background(), sip.Outgoing{URI: uri}, func(sip.Event) {}); !errors.Is(err, errRefused) {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// A callee's Contact leads the ACK to no address that is refused: it goes to the callee itself.
func TestAck_RefusedContactGoesToPeer(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{Targets: refuses(netip.MustParseAddr("127.0.0.9"))})
	callee, victim := listenAt(t, "127.0.0.1"), listenAt(t, "127.0.0.9")
	_, err := server.Server.Invite(context.Background(), sip.Outgoing{URI: "sip:a@" + callee.LocalAddr().String(), SDP: []byte("v=0\r\n"),
		NextHop: resolve.Target{Host: callee.LocalAddr().String(), Transport: "udp"}}, func(sip.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 65536)
	read := func(c *net.UDPConn, wait time.Duration) (string, net.Addr) {
		_ = c.SetReadDeadline(time.Now().Add(wait))
		n, from, err := c.ReadFrom(b)
		if err != nil {
			return "", nil
		}
		return string(b[:n]), from
	}
	invite, from := read(callee, testTimeout)
	var copied strings.Builder
	for _, name := range []string{"Via", "From", "Call-ID", "CSeq"} {
		copied.WriteString(regexp.MustCompile(`(?m)^` + name + `: .*\n`).FindString(invite))
	}
	to := strings.TrimSpace(regexp.MustCompile(`(?m)^To: .*$`).FindString(invite))
	answer := fmt.Sprintf("SIP/2.0 200 OK\r\n%s%s;tag=x\r\nContact: <sip:a@%s>\r\nContent-Type: application/sdp\r\nContent-Length: 5\r\n\r\nv=0\r\n",
		copied.String(), to, victim.LocalAddr())
	if _, err := callee.WriteTo([]byte(answer), from); err != nil {
		t.Fatal(err)
	}
	if ack, _ := read(callee, testTimeout); !strings.HasPrefix(ack, "ACK ") {
		t.Errorf("the callee gets %q", ack)
	}
	if got, _ := read(victim, 50*time.Millisecond); got != "" {
		t.Errorf("the refused address gets %q", got)
	}
}
