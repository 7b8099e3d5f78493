package httplimit

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// from is a listener whose connections come from an address.
type from struct {
	net.Listener
	address string
}

type fromConn struct {
	net.Conn
	address net.Addr
}

func (c fromConn) RemoteAddr() net.Addr { return c.address }

func (f from) Accept() (net.Conn, error) {
	c, err := f.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return fromConn{c, &net.TCPAddr{IP: net.ParseIP(f.address), Port: 1}}, nil
}

// newServer returns the address of a server with limits.
func newServer(t *testing.T, l *Limiter, address string) string {
	t.Helper()
	s := httptest.NewUnstartedServer(l.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/take" {
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
			}
		}
	})))
	s.Listener, s.Config.ConnState = l.Listener(from{s.Listener, address}, true), l.State
	s.Config.IdleTimeout = time.Hour
	s.Start()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return strings.TrimPrefix(s.URL, "http://")
}

// send opens a connection and sends a request. It returns the status.
func send(t *testing.T, to, path, header string) (status string, c net.Conn) {
	t.Helper()
	c, err := net.Dial("tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n", path, header); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return "closed", c
	}
	return strings.Fields(line)[1], c
}

func TestListener_LimitOfAddress(t *testing.T) {
	t.Parallel()
	l := New(Config{Connections: 100, PerAddress: 3, WebSockets: 10, Descriptors: NewDescriptors()})
	at, other := newServer(t, l, "192.0.2.1"), newServer(t, l, "192.0.2.2")
	for range 3 {
		if got, _ := send(t, at, "/", ""); got != "200" {
			t.Fatalf("within the limit: %s", got)
		}
	}
	if got, _ := send(t, at, "/", ""); got != "503" && got != "closed" {
		t.Errorf("beyond the limit: %s", got)
	}
	if got, _ := send(t, other, "/", ""); got != "200" {
		t.Errorf("another address: %s", got)
	}
	time.Sleep(newTime + 100*time.Millisecond) //nolint:forbidigo // the age of a connection is what is tested
	if got, _ := send(t, at, "/", ""); got != "200" {
		t.Errorf("idle connections were not closed for a new one: %s", got)
	}
	if n, _ := l.Counts(); n > 4 {
		t.Errorf("%d connections", n)
	}
}

func TestListener_LimitOfMachineExemptsNobody(t *testing.T) {
	t.Parallel()
	l := New(Config{Connections: 4, PerAddress: 1, WebSockets: 1, Descriptors: NewDescriptors()})
	at := newServer(t, l, "127.0.0.1") // not counted by address
	_, taken := send(t, at, "/take", "Connection: Upgrade\r\nUpgrade: websocket\r\n")
	if got, _ := send(t, at, "/take", "Connection: Upgrade\r\nUpgrade: websocket\r\n"); got != "503" {
		t.Errorf("a WebSocket beyond the limit: %s", got)
	}
	for range 2 {
		if got, _ := send(t, at, "/", ""); got != "200" {
			t.Errorf("within the limit: %s", got)
		}
	}
	if got, _ := send(t, at, "/", ""); got == "200" {
		t.Error("a connection beyond the limit was accepted")
	}
	_ = taken.Close()
	for began := time.Now(); ; {
		if _, w := l.Counts(); w == 0 {
			break
		}
		if time.Since(began) > 10*time.Second {
			t.Fatal("a closed WebSocket is still counted")
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // polls a condition that publishes no event
	}
}

// Descriptors that are nearly used up leave no place for HTTP.
func TestListener_KeepsDescriptorsBack(t *testing.T) {
	t.Parallel()
	l := New(Config{Connections: 100, PerAddress: 100, WebSockets: 10,
		Descriptors: &Descriptors{read: time.Now().Add(time.Hour), used: 75, allowed: 100}})
	at := newServer(t, l, "192.0.2.1")
	if got, _ := send(t, at, "/", ""); got != "503" && got != "closed" {
		t.Errorf("with 75 of 100 descriptors: %s", got)
	}
	l.config.Descriptors.add(-10)
	if got, _ := send(t, at, "/", ""); got != "200" {
		t.Errorf("with 65 of 100 descriptors: %s", got)
	}
}
