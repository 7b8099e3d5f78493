package sip_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
)

// noLimits switches off the limits that would stop a fuzzer.
var noLimits = sip.Limits{SourcePerSecond: 1 << 30, Probes: 1 << 30, SourceConnections: 1 << 30, InvitesPerSecond: 1 << 29}

// FuzzDatagram sends arbitrary bytes to a running server, as a datagram and inside a TCP stream. A recovered panic is
// a failure too.
func FuzzDatagram(f *testing.F) {
	files, _ := filepath.Glob(filepath.Join("testdata", "torture", "*.dat"))
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	book := newFakeDirectory().addAccount("alice", "secret")
	server := newTestServer(f, sip.Config{Accounts: book, Bindings: book, Limits: noLimits})
	trunk := newTestServer(f, sip.Config{Limits: noLimits})
	go func() {
		for in := range trunk.calls {
			in.Answer(testAnswerSDP)
			in.Leg().Bye(sip.Reason{})
		}
	}()
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, s := range []*testServer{server, trunk} {
			before := s.Stats().Received
			udp := dialUDP(t, s)
			udp.Write(b)
			tcp := newPeer(t, "tcp", s)
			tcp.conn.Write(b)
			tcp.conn.(*net.TCPConn).SetLinger(0) // no port stays in TIME_WAIT
			tcp.conn.Close()
			deadline := time.Now().Add(100 * time.Millisecond)
			for s.Stats().Received == before && time.Now().Before(deadline) && len(b) > 0 && len(b) < 60000 {
				<-time.After(50 * time.Microsecond)
			}
			if n := s.Stats().Panics; n > 0 {
				t.Fatalf("%d panics", n)
			}
		}
	})
}

// FuzzWebSocket sends arbitrary bytes to a running server by WebSocket: inside a valid frame, and in place of frames.
func FuzzWebSocket(f *testing.F) {
	files, _ := filepath.Glob(filepath.Join("testdata", "torture", "*.dat"))
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, frame := range []string{
		"\x81\x80\x00\x00\x00\x00", "\x89\x80\x00\x00\x00\x00", "\x88\x82\x00\x00\x00\x00\x03\xe8", "\x01\x83\x01\x02\x03\x04abc\x80\x83\x01\x02\x03\x04abc",
		"\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00", "\xf1\x00", "\x81\x05plain",
	} {
		f.Add([]byte(frame))
	}
	book := newFakeDirectory().addAccount("alice", "secret")
	server := newTestServer(f, sip.Config{Accounts: book, Bindings: book, Limits: noLimits})
	address := serveWebSocket(f, server)
	f.Fuzz(func(t *testing.T, b []byte) {
		sound := []byte{}
		if len(b) < 1<<16 {
			sound = webSocketFrame(b)
		}
		for _, bytes := range [][]byte{sound, b} {
			c := dialRawWebSocket(t, address)
			c.Write(bytes)
			c.Write(webSocketFrame([]byte(webSocketOptions(0)))) // the server may or may not parse this
			c.SetReadDeadline(time.Now().Add(2 * time.Millisecond))
			c.Read(make([]byte, 4096))
			c.(*net.TCPConn).SetLinger(0)
			c.Close()
		}
		if n := server.Stats().Panics; n > 0 {
			t.Fatalf("%d panics", n)
		}
	})
}
