package egress

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// hostileDNS is a hostile DNS server: it returns the next address of its list for each query.
type hostileDNS struct {
	addresses map[string][]string
	asked     atomic.Int64
}

func (n *hostileDNS) resolver(t *testing.T) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	go n.serve(server)
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

func (n *hostileDNS) serve(server net.PacketConn) {
	b := make([]byte, 1500)
	for {
		size, from, err := server.ReadFrom(b)
		if err != nil {
			return
		}
		_, _ = server.WriteTo(n.answer(b[:size]), from)
	}
}

// answer returns a DNS response to a single question (RFC 1035 §4).
func (n *hostileDNS) answer(q []byte) []byte {
	end, labels := 12, []string{}
	for q[end] != 0 {
		l := int(q[end])
		labels = append(labels, string(q[end+1:end+1+l]))
		end += 1 + l
	}
	question := q[12 : end+5]
	kind := binary.BigEndian.Uint16(q[end+1:])
	out := append([]byte{q[0], q[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question...)
	list := n.addresses[strings.Join(labels, ".")]
	if len(list) == 0 {
		return out
	}
	asked := int(n.asked.Add(1)) - 1
	a := netip.MustParseAddr(list[min(asked/2, len(list)-1)]) // A and AAAA are queried together
	if a.Is4() != (kind == 1) {
		return out
	}
	out[7] = 1
	out = append(out, 0xc0, 12, byte(kind>>8), byte(kind), 0, 1, 0, 0, 0, 0, 0, byte(a.BitLen()/8))
	return append(out, a.AsSlice()...)
}

func TestClient_BlocksNamesOfInternalAddresses(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, inside := range []string{"127.0.0.1", "127.255.255.254", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1",
		"169.254.169.254", "192.0.0.1", "198.18.0.1", "224.0.0.1", "255.255.255.255", "::1", "::", "::ffff:127.0.0.1", "fe80::1",
		"fd00::1", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:db8::1", "ff02::1"} {
		n := &hostileDNS{addresses: map[string][]string{"customer.test": {inside}}}
		g := New([]netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")})
		g.resolver = n.resolver(t)
		if err := g.Check("https://customer.test:" + port + "/"); err != nil {
			t.Errorf("%s: a name is refused at registration: %v", inside, err)
		}
		for _, scheme := range []string{"https", "http"} {
			_, err := g.Client(Limits{Connect: 2 * time.Second, Total: 3 * time.Second}).Get(scheme + "://customer.test:" + port + "/")
			if !errors.Is(err, ErrBlocked) || !strings.Contains(err.Error(), "--allow-targets") {
				t.Errorf("%s by %s: %v, want ErrBlocked and what to do", inside, scheme, err)
			}
		}
		if err := g.Resolve(t.Context(), "customer.test"); !errors.Is(err, ErrBlocked) {
			t.Errorf("%s: Resolve says %v", inside, err)
		}
	}
	if reached.Load() {
		t.Error("a request went inside")
	}
}

// DNS rebinding: the name resolves to a public address at the check, and to another one at the connection.
func TestClient_BlocksDNSRebinding(t *testing.T) {
	t.Parallel()
	n := &hostileDNS{addresses: map[string][]string{"rebind.test": {"93.184.215.14", "127.0.0.1"}}}
	g := New(nil)
	g.resolver = n.resolver(t)
	if err := g.Resolve(t.Context(), "rebind.test"); err != nil {
		t.Fatalf("the public address: %v", err)
	}
	if _, err := g.Client(Limits{Connect: 2 * time.Second}).Get("https://rebind.test/"); !errors.Is(err, ErrBlocked) {
		t.Errorf("after it changed: %v, want ErrBlocked", err)
	}
}

func TestClient_AllowedTargetByName(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	g := New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	g.resolver = (&hostileDNS{addresses: map[string][]string{"lan.test": {"127.0.0.1"}}}).resolver(t)
	response, err := g.Client(Limits{}).Get("http://lan.test:" + port + "/")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != 404 {
		t.Errorf("status %d", response.StatusCode)
	}
}
