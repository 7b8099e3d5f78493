package sip_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/sip/transport"
)

// serveWebSocket serves a server's WebSocket and returns its ws: address.
func serveWebSocket(t testing.TB, server *testServer) string {
	t.Helper()
	web := httptest.NewServer(server.WebSocket())
	t.Cleanup(web.Close)
	return "ws" + strings.TrimPrefix(web.URL, "http")
}

func dialWebSocket(t testing.TB, address string, header http.Header) *websocket.Conn {
	t.Helper()
	c, _, err := websocket.Dial(context.Background(), address, &websocket.DialOptions{Subprotocols: []string{"sip"}, HTTPHeader: header})
	if err != nil {
		t.Fatal(err)
	}
	c.SetReadLimit(1 << 20)
	t.Cleanup(func() { c.CloseNow() })
	return c
}

// newWebSocketPeer returns a hand-driven browser.
func newWebSocketPeer(t testing.TB, address string) *peer {
	t.Helper()
	conn := websocket.NetConn(context.Background(), dialWebSocket(t, address, nil), websocket.MessageText)
	return &peer{t: t, conn: conn, in: bufio.NewReaderSize(conn, 65536), tcp: true, webSocket: true}
}

// register registers a user of the fakeDirectory over any transport.
func (p *peer) register(user, password string) {
	p.t.Helper()
	p.sendRequest("REGISTER", user, "reg-"+user, 1, "")
	challenge := headerValue(p.wantMessage("SIP/2.0 401"), "WWW-Authenticate")
	p.sendRequest("REGISTER", user, "reg-"+user, 2, "Authorization: "+digestAuthorization(challenge, user, password, "REGISTER", 1)+"\n")
	p.wantMessage("SIP/2.0 200")
}

func TestWebSocket_RegisterAndCallBothDirections(t *testing.T) {
	t.Parallel()
	book := newFakeDirectory().addAccount("alice", "secret")
	server := newTestServer(t, sip.Config{Accounts: book, Bindings: book})
	p := newWebSocketPeer(t, serveWebSocket(t, server))
	p.register("alice", "secret")
	all, _ := book.Load(context.Background(), "id-alice")
	if len(all) != 1 || all[0].Transport != sipmsg.WS || all[0].Flow == 0 || !server.Reachable(all[0]) {
		t.Fatalf("bindings %+v", all)
	}

	out := newEventLog()
	leg, err := server.Server.Invite(context.Background(), sip.Outgoing{Binding: &all[0], SDP: testOfferSDP}, out.record)
	if err != nil {
		t.Fatal(err)
	}
	inv := p.wantMessage("INVITE ")
	if !strings.HasPrefix(inv, "INVITE sip:alice@phone.invalid") || !strings.HasPrefix(headerValue(inv, "Via"), "SIP/2.0/WS ") ||
		!strings.Contains(headerValue(inv, "Contact"), ";transport=ws>") {
		t.Errorf("the browser got\n%s", inv)
	}
	p.respond(inv, 200, "one", "Contact: <sip:alice@phone.invalid;transport=ws>\n")
	p.wantMessage("ACK ")
	wantEvent[sip.Answered](t, out)
	leg.Bye(sip.Reason{})
	p.respond(p.wantMessage("BYE "), 200, "", "")
	wantEvent[sip.Closed](t, out)

	p.sendRequest("INVITE", "alice", "call-1", 1, "")
	challenge := headerValue(p.wantMessage("SIP/2.0 407"), "Proxy-Authenticate")
	p.sendRequest("INVITE", "alice", "call-1", 2, "Proxy-Authorization: "+digestAuthorization(challenge, "alice", "secret", "INVITE", 1)+"\n")
	in := server.wantInbound(t)
	if in.Account != "id-alice" || in.Transport != sipmsg.WS {
		t.Errorf("inbound call %+v", in)
	}
	in.Listen(newEventLog().record)
	in.Answer(testAnswerSDP)
	p.wantMessage("SIP/2.0 200")
	in.Leg().Bye(sip.Reason{})

	p.conn.Close()
	waitUntil(t, "the browser gone", func() bool { return !server.Reachable(all[0]) })
}

func TestWebSocket_FragmentedAndBinary(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{})
	c := dialWebSocket(t, serveWebSocket(t, server), nil)
	for i, kind := range []websocket.MessageType{websocket.MessageText, websocket.MessageBinary} {
		w, err := c.Writer(context.Background(), kind)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.SplitAfter(webSocketOptions(i), "\r\n") {
			io.WriteString(w, part)
		}
		w.Close()
		if _, b, err := c.Read(context.Background()); err != nil || !strings.HasPrefix(string(b), "SIP/2.0 200") {
			t.Fatalf("got %q, %v", b, err)
		}
	}
	c.Write(context.Background(), websocket.MessageText, []byte("\r\n\r\n"))
	if _, b, err := c.Read(context.Background()); err != nil || string(b) != "\r\n" {
		t.Errorf("a keep-alive is answered with %q, %v", b, err)
	}
}

func webSocketOptions(i int) string {
	return fmt.Sprintf("OPTIONS sip:x@y SIP/2.0\r\nVia: SIP/2.0/WS a.invalid;branch=z9hG4bKweb%d\r\nMax-Forwards: 70\r\n"+
		"From: <sip:a@b>;tag=1\r\nTo: <sip:x@y>\r\nCall-ID: web%d\r\nCSeq: 1 OPTIONS\r\n\r\n", i, i)
}

func TestWebSocket_Handshake(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{WebSocket: transport.WebSocketConfig{Origins: []string{"phone.example", "https://desk.example"}}})
	address := serveWebSocket(t, server)
	for _, c := range []struct {
		name, protocol, origin string
		status                 int
	}{
		{"no subprotocol", "", "", 400},
		{"another subprotocol", "chat", "", 400},
		{"no origin", "sip", "", 101},
		{"own host", "sip", "http://" + strings.TrimPrefix(address, "ws://"), 101},
		{"listed host", "sip", "https://phone.example", 101},
		{"listed origin", "sip", "https://desk.example", 101},
		{"listed host, other scheme", "sip", "http://desk.example", 403},
		{"foreign page", "sip", "https://evil.example", 403},
		{"page in a sandbox", "sip", "null", 403},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := &websocket.DialOptions{HTTPHeader: http.Header{}}
			if c.protocol != "" {
				o.Subprotocols = []string{c.protocol}
			}
			if c.origin != "" {
				o.HTTPHeader.Set("Origin", c.origin)
			}
			conn, res, err := websocket.Dial(context.Background(), address, o)
			if conn != nil {
				conn.CloseNow()
			}
			if res == nil || res.StatusCode != c.status {
				t.Errorf("got %v %v, want %d", res, err, c.status)
			}
		})
	}
}

func TestWebSocket_SourceFromTrustedProxyOnly(t *testing.T) {
	t.Parallel()
	loopback := netip.MustParsePrefix("127.0.0.0/8")
	for _, c := range []struct {
		proxies []netip.Prefix
		want    string
		kind    sipmsg.Transport
	}{{nil, "127.0.0.1", sipmsg.WS}, {[]netip.Prefix{loopback}, "198.51.100.7", sipmsg.WSS}} {
		book := newFakeDirectory().addAccount("alice", "secret")
		book.trunks = []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("198.51.100.7")} // without effect over WebSocket
		server := newTestServer(t, sip.Config{Accounts: book, Bindings: book, WebSocket: transport.WebSocketConfig{Proxies: c.proxies}})
		ws := dialWebSocket(t, serveWebSocket(t, server), http.Header{"X-Forwarded-For": {"203.0.113.1, 198.51.100.7"}, "X-Forwarded-Proto": {"https"}})
		conn := websocket.NetConn(context.Background(), ws, websocket.MessageText)
		p := &peer{t: t, conn: conn, in: bufio.NewReader(conn), tcp: true, webSocket: true}
		p.sendRequest("INVITE", "4930123456", "c0", 1, "")
		p.wantMessage("SIP/2.0 407")
		p.sendRequest("INVITE", "alice", "c1", 1, "")
		challenge := headerValue(p.wantMessage("SIP/2.0 407"), "Proxy-Authenticate")
		p.sendRequest("INVITE", "alice", "c1", 2, "Proxy-Authorization: "+digestAuthorization(challenge, "alice", "secret", "INVITE", 1)+"\n")
		in := server.wantInbound(t)
		if in.Source.Addr().String() != c.want || in.Transport != c.kind || in.TrunkID != "" {
			t.Errorf("with proxies %v the call is from %s by %s, trunk %q", c.proxies, in.Source, in.Transport, in.TrunkID)
		}
		in.Reject(486, "", 0)
	}
}

func TestWebSocket_Limits(t *testing.T) {
	t.Parallel()
	t.Run("large message", func(t *testing.T) {
		t.Parallel()
		server := newTestServer(t, sip.Config{Limits: sip.Limits{MessageBytes: 4000}})
		c := dialWebSocket(t, serveWebSocket(t, server), nil)
		c.Write(context.Background(), websocket.MessageText, []byte(strings.Repeat("x", 4001)))
		if _, _, err := c.Read(context.Background()); websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
			t.Errorf("ended with %v", err)
		}
		waitUntil(t, "the connection forgotten", func() bool { return server.Stats().Connections == 0 })
	})
	t.Run("connections of a stranger", func(t *testing.T) {
		t.Parallel()
		server := newTestServer(t, sip.Config{Limits: sip.Limits{SourceConnections: 3}})
		address := serveWebSocket(t, server)
		for range 3 {
			dialWebSocket(t, address, nil)
		}
		waitUntil(t, "three connections", func() bool { return server.Stats().Connections == 3 })
		if _, _, err := dialWebSocket(t, address, nil).Read(context.Background()); err == nil {
			t.Error("the fourth connection stays")
		}
	})
	t.Run("who does not answer a ping", func(t *testing.T) {
		t.Parallel()
		server := newTestServer(t, sip.Config{Limits: sip.Limits{PingInterval: 20 * time.Millisecond}})
		c := dialRawWebSocket(t, serveWebSocket(t, server))
		buf := make([]byte, 64)
		n, err := c.Read(buf)
		if err != nil || n < 2 || buf[0] != 0x89 {
			t.Errorf("no ping came: %x %v", buf[:n], err)
		}
		waitUntil(t, "the connection ended", func() bool { return server.Stats().Connections == 0 })
	})
	t.Run("slow reader", func(t *testing.T) {
		t.Parallel()
		server := newTestServer(t, sip.Config{Limits: sip.Limits{SourcePerSecond: 1 << 30}})
		address := serveWebSocket(t, server)
		slow := dialRawWebSocket(t, address)
		slow.(*net.TCPConn).SetReadBuffer(4096)
		long := strings.Replace(webSocketOptions(0), "branch=z9hG4bK", "branch=z9hG4bK"+strings.Repeat("l", 4000), 1)
		frame := webSocketFrame([]byte(long)) // repeated in every response, which fills the network buffers sooner
		for i := 0; server.Stats().Connections > 0 && i < 200_000; i++ {
			if _, err := slow.Write(frame); err != nil {
				break
			}
		}
		waitUntil(t, "the slow reader gone", func() bool { return server.Stats().Connections == 0 })
		fast := dialWebSocket(t, address, nil)
		fast.Write(context.Background(), websocket.MessageText, []byte(webSocketOptions(1)))
		if _, _, err := fast.Read(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// dialRawWebSocket returns a WebSocket connection on which the test writes frames itself.
func dialRawWebSocket(t testing.TB, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(address, "ws://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: sip\r\n\r\n")
	c.SetReadDeadline(time.Now().Add(testTimeout))
	head := make([]byte, 0, 512)
	for b := make([]byte, 1); !strings.HasSuffix(string(head), "\r\n\r\n"); head = append(head, b[0]) {
		if _, err := c.Read(b); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// webSocketFrame returns one masked text frame; the mask is zero.
func webSocketFrame(b []byte) []byte {
	f := []byte{0x81, 0x80 | 126, byte(len(b) >> 8), byte(len(b)), 0, 0, 0, 0}
	return append(f, b...)
}
