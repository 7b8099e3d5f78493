package smpp

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// TestServer_SilentConnectionsMakeRoom takes all connections from two addresses without a bind. A client at a third
// address binds nevertheless, because the oldest of them is ended.
func TestServer_SilentConnectionsMakeRoom(t *testing.T) {
	t.Parallel()
	c := startServer(t, func(s *ServerConfig) { s.Connections, s.LoginTimeout = 4, time.Hour })
	var silent []net.Conn
	for _, from := range []string{"127.0.0.2", "127.0.0.2", "127.0.0.3", "127.0.0.3"} {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		conn, err := d.Dial("tcp", c.address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		silent = append(silent, conn)
		answersEnquiry(t, conn)
	}
	startClient(t, c.address, nil).waitBound(t)
	for i, conn := range silent {
		if i > 0 {
			answersEnquiry(t, conn)
			continue
		}
		_ = conn.SetReadDeadline(time.Now().Add(waitTimeout))
		if _, err := read(conn); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the oldest connection was kept: %v", err)
		}
	}
}

// answersEnquiry fails the test unless the server answers on a connection.
func answersEnquiry(t *testing.T, conn net.Conn) {
	t.Helper()
	b, err := PDU{Command: EnquireLink, Sequence: 1}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(b); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(waitTimeout))
	if _, err := read(conn); err != nil {
		t.Fatalf("no answer: %v", err)
	}
}
