package sip_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
)

// TestDialog_RequestsStayInOrder sends 20,000 INFO requests in sequence and expects them in order: none lost except
// by UDP, none reordered.
func TestDialog_RequestsStayInOrder(t *testing.T) {
	t.Parallel()
	const messages = 20000
	for _, network := range []string{"udp", "tcp"} {
		server := newTestServer(t, sip.Config{})
		p := newPeer(t, network, server)
		via := strings.ToUpper(network)
		p.sendRequest("INVITE", "al", "order", 1, "")
		in := server.wantInbound(t)
		last, inversions, heard := -1, 0, 0
		done := make(chan struct{})
		in.Listen(func(e sip.Event) {
			switch e := e.(type) {
			case sip.Info:
				var n int
				fmt.Sscan(string(e.Body), &n)
				if n <= last {
					inversions++
				}
				last, heard = n, heard+1
				e.Respond(200)
			case sip.Bye:
				close(done)
			}
		})
		in.Answer(testAnswerSDP)
		ok := p.wantMessage("SIP/2.0 200")
		to := headerValue(ok, "To")
		inside := func(method string, seq int, body string) {
			p.send("%s sip:x SIP/2.0\nVia: SIP/2.0/%s %s;branch=z9hG4bKo%d%s;rport\nMax-Forwards: 70\nFrom: <sip:al@x>;tag=forder\nTo: %s\nCall-ID: order\nCSeq: %d %s\nContent-Length: %d\n\n%s",
				strings.Replace(method, " ", " ", 1), via, p.conn.LocalAddr(), seq, method, to, seq, method, len(body), body)
		}
		// This test ignores responses.
		go func() {
			buf := make([]byte, 65536)
			for {
				if _, err := p.conn.Read(buf); err != nil {
					return
				}
			}
		}()
		p.conn.SetReadDeadline(time.Time{})
		inside("ACK", 1, "")
		for i := range messages {
			inside("INFO", i+2, fmt.Sprint(i))
			for network == "udp" && i-int(server.Stats().Received) > 100 { // do not overflow the socket buffer
				runtime.Gosched()
			}
		}
		inside("BYE", messages+2, "")
		select {
		case <-done:
		case <-time.After(3 * testTimeout):
			t.Fatalf("%s: no BYE after %d messages", network, heard)
		}
		if inversions != 0 || heard != messages {
			t.Errorf("%s: %d inversions in %d messages, want 0 in %d", network, inversions, heard, messages)
		}
	}
}

// TestClose_LeaksNoGoroutinesOrDialogs makes calls of every kind and closes the servers. Afterwards there are as many
// goroutines as before, and no dialogs.
func TestClose_LeaksNoGoroutinesOrDialogs(t *testing.T) {
	before := runtime.NumGoroutine()
	pa, pb := newTestServer(t, sip.Config{}), newTestServer(t, sip.Config{})
	for i := range 300 {
		transport := bothTransports[i%2]
		a, b := newEventLog(), newEventLog()
		leg := placeCall(t, pa, pb, transport, testOfferSDP, a)
		in := pb.wantInbound(t)
		in.Listen(b.record)
		switch i % 3 {
		case 0:
			in.Reject(486, "", 0)
			wantEvent[sip.Failed](t, a)
			wantEvent[sip.Closed](t, b)
		case 1:
			leg.Cancel()
			wantEvent[sip.Failed](t, a)
			wantEvent[sip.Canceled](t, b)
		case 2:
			in.Answer(testAnswerSDP)
			wantEvent[sip.Answered](t, a)
			leg.Bye(sip.Reason{})
			wantEvent[sip.Closed](t, a)
		}
	}
	waitUntil(t, "dialogs gone", func() bool { return pa.Stats().Dialogs == 0 && pb.Stats().Dialogs == 0 && pb.Stats().Calls == 0 })
	pa.Close()
	pb.Close()
	waitUntil(t, "goroutines gone", func() bool { return runtime.NumGoroutine() <= before })
}

func waitUntil(t testing.TB, what string, is func() bool) {
	t.Helper()
	deadline := time.Now().Add(testTimeout)
	for !is() {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<16)
			t.Fatalf("not so in time: %s\n%s", what, buf[:runtime.Stack(buf, true)])
		}
		<-time.After(5 * time.Millisecond)
	}
}

// TestAdmission_UntrustedSourcesCostNoMemory sends invalid messages and expects that no memory or transaction is kept
// for them.
func TestAdmission_UntrustedSourcesCostNoMemory(t *testing.T) {
	server := newTestServer(t, sip.Config{Limits: sip.Limits{SourcePerSecond: 1 << 30}})
	p := newPeer(t, "udp", server)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range 50000 {
		if i%1000 == 999 { // no more at once than the socket buffer of this machine holds
			waitUntil(t, "messages taken", func() bool { return server.Stats().Received > uint64(i)*6/5 })
		}
		p.conn.Write([]byte("\r\n\r\n"))
		if i%2 == 0 {
			p.send("INVITE sip:x SIP/2.0\nVia: SIP/2.0/UDP 10.0.0.%d;branch=z9hG4bKm%d\nCall-ID: m%d\nCSeq: 1 INVITE\n\n", i%250, i, i)
		}
	}
	waitUntil(t, "messages taken", func() bool { return server.Stats().Received > 40000 })
	if grown := int64(heap()) - int64(before); grown > 4<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	if st := server.Stats(); st.ServerTransactions != 0 {
		t.Errorf("%d transactions are kept", st.ServerTransactions)
	}
	wantOptionsAnswered(t, server)
}

func TestHandler_PanicCostsOneCall(t *testing.T) {
	t.Parallel()
	bad := &panickingHandler{}
	s, err := sip.Listen(context.Background(), sip.Config{Addr: "127.0.0.1:0", Accounts: sip.AnySource{}}, bad)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	pa := newTestServer(t, sip.Config{})
	a := newEventLog()
	pa.Server.Invite(context.Background(), sip.Outgoing{URI: "sip:x@" + s.Addr().String(), SDP: testOfferSDP}, a.record)
	if f := wantEvent[sip.Failed](t, a); f.Status != 500 {
		t.Errorf("got %+v, want 500", f)
	}
	if s.Stats().Panics != 1 {
		t.Errorf("%d panics counted, want 1", s.Stats().Panics)
	}
}

type panickingHandler struct{}

func (*panickingHandler) Invite(context.Context, *sip.Inbound) { panic("on purpose") }
