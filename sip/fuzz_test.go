package sip_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"soniq/sip"
)

// FuzzDatagram throws bytes at a running server, as a datagram and inside a
// TCP stream. A recovered panic is a failure too.
func FuzzDatagram(f *testing.F) {
	files, _ := filepath.Glob(filepath.Join("testdata", "torture", "*.dat"))
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	book := newBook().add("alice", "secret")
	server := listen(f, sip.Config{Accounts: book, Bindings: book, Limits: sip.Limits{SourcePerSecond: 1 << 30}})
	trunk := listen(f, sip.Config{Limits: sip.Limits{SourcePerSecond: 1 << 30}})
	go func() {
		for in := range trunk.calls {
			in.Answer(answerSDP)
			in.Leg().Bye(sip.Reason{})
		}
	}()
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, s := range []*phone{server, trunk} {
			before := s.Stats().Received
			udp := dialUDP(t, s)
			udp.Write(b)
			tcp := newPeer(t, "tcp", s)
			tcp.conn.Write(b)
			tcp.conn.(*net.TCPConn).SetLinger(0) // no port waits for its end
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
