package sip

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// RFC 3261 §17.1.1.2 and §17.1.2.2: retransmissions without a response.
func TestClientTransaction_RetransmitsUntilTimeout(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		kind txKind
		tcp  bool
		want []float64 // seconds at which it is sent
	}{
		{"INVITE over UDP doubles (A)", inviteTx, false, []float64{0, .5, 1.5, 3.5, 7.5, 15.5, 31.5}},
		{"others over UDP double up to T2 (E)", nonInviteTx, false, []float64{0, .5, 1.5, 3.5, 7.5, 11.5, 15.5, 19.5, 23.5, 27.5, 31.5}},
		{"INVITE over TCP is sent once", inviteTx, true, []float64{0}},
		{"others over TCP are sent once", nonInviteTx, true, []float64{0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newTestShard(t)
			f := udpPeer
			if c.tcp {
				f = tcpPeer(l)
			}
			var at []float64
			status, ended := 0, time.Duration(0)
			l.startClientTx(clientKey{7, c.kind}, f, []byte(sampleInvite), func(m *received, s int) { status, ended = s, l.now })
			for seen := 0; l.now < 40*time.Second; l.advance(100 * time.Millisecond) {
				for ; seen < len(l.sent); seen++ {
					at = append(at, l.now.Seconds())
				}
			}
			if !slices.Equal(at, c.want) {
				t.Errorf("sent at %v, want %v", at, c.want)
			}
			if status != 408 || ended != 32*time.Second {
				t.Errorf("ended with %d after %v, want 408 after 32s (B, F)", status, ended)
			}
			if len(l.clientTxs) != 0 || len(l.timers) != 0 || len(l.txsByConn) != 0 {
				t.Errorf("left behind: %d transactions, %d timers, %d waiting", len(l.clientTxs), len(l.timers), len(l.txsByConn))
			}
		})
	}
}

func TestClientTransaction_ProvisionalStopsInviteRetransmission(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	var got []int
	l.startClientTx(clientKey{7, inviteTx}, udpPeer, []byte(sampleInvite), func(_ *received, s int) { got = append(got, s) })
	l.handleMessage(sampleResponse(180, "INVITE", "x"), udpPeer)
	l.advance(100 * time.Second)
	if len(l.sent) != 1 || !slices.Equal(got, []int{180}) {
		t.Errorf("sent %d times and heard %v, want once and [180]", len(l.sent), got)
	}
}

func TestClientTransaction_EachFailureIsAcknowledged(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	var got []int
	l.startClientTx(clientKey{7, inviteTx}, udpPeer, []byte(sampleInvite), func(_ *received, s int) { got = append(got, s) })
	for range 3 {
		l.handleMessage(sampleResponse(486, "INVITE", "x"), udpPeer)
		l.advance(time.Second)
	}
	if m := l.sentMethods(); !slices.Equal(m, []string{"INVITE", "ACK", "ACK", "ACK"}) {
		t.Fatalf("sent %v", m)
	}
	ack := l.sent[1]
	for _, part := range []string{"branch=z9hG4bK0000000000000007", "To: <sip:bob@example.com>;tag=x\r\n", "CSeq: 1 ACK\r\n", "ACK sip:bob@example.com SIP/2.0\r\n"} {
		if !strings.Contains(ack, part) {
			t.Errorf("ACK lacks %q:\n%s", part, ack)
		}
	}
	if !slices.Equal(got, []int{486}) {
		t.Errorf("heard %v, want one 486", got)
	}
	l.advance(28 * time.Second) // 31 s after the failure
	if len(l.clientTxs) != 1 {
		t.Error("the transaction ends before timer D")
	}
	l.advance(time.Second)
	if len(l.clientTxs) != 0 {
		t.Error("the transaction outlives timer D")
	}
}

func TestClientTransaction_LingersForTimerK(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	heard := 0
	l.startClientTx(clientKey{7, nonInviteTx}, udpPeer, []byte(sampleInvite), func(*received, int) { heard++ })
	l.handleMessage(sampleResponse(200, "BYE", "x"), udpPeer)
	l.handleMessage(sampleResponse(200, "BYE", "x"), udpPeer)
	if heard != 1 || len(l.clientTxs) != 1 {
		t.Errorf("heard %d responses with %d transactions, want 1 and 1", heard, len(l.clientTxs))
	}
	l.advance(5 * time.Second)
	if len(l.clientTxs) != 0 {
		t.Error("the transaction outlives timer K")
	}
}

func TestServerTransaction_RetransmissionGetsSameResponse(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	for range 3 {
		l.handleMessage(request("OPTIONS", "o1", "", 1), udpPeer)
		l.advance(10 * time.Second)
	}
	if len(l.sent) != 3 || l.sent[0] != l.sent[1] || l.sent[1] != l.sent[2] {
		t.Errorf("answers differ:\n%s", strings.Join(l.sent, "\n"))
	}
	l.advance(2 * time.Second)
	if len(l.serverTxs) != 0 {
		t.Error("the transaction outlives timer J")
	}
	l.handleMessage(request("OPTIONS", "o2", "", 1), tcpPeer(l))
	if len(l.serverTxs) != 0 {
		t.Error("over TCP a finished transaction is kept")
	}
}

func TestServerTransaction_RejectionRepeatedUntilACK(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	in := l.receiveInvite(t)
	in.Reject(486, "", 0)
	l.work()
	l.advance(8 * time.Second) // G: 0, 0.5, 1.5, 3.5, 7.5
	if m := l.sentMethods(); !slices.Equal(m, []string{"100", "486", "486", "486", "486", "486"}) {
		t.Fatalf("sent %v", m)
	}
	l.handleMessage(request("ACK", "i1", l.localTag(), 1), udpPeer)
	l.advance(4 * time.Second)
	if len(l.sent) != 6 || len(l.serverTxs) != 1 {
		t.Errorf("after the ACK: %d sent, %d transactions, want 6 and 1 (timer I)", len(l.sent), len(l.serverTxs))
	}
	l.advance(2 * time.Second)
	if len(l.serverTxs) != 0 || len(l.legs) != 0 {
		t.Errorf("left behind: %d transactions, %d legs", len(l.serverTxs), len(l.legs))
	}
}

func TestAnswer_RepeatedUntilACKThenHungUp(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	in := l.receiveInvite(t)
	var got []Event
	in.Listen(func(e Event) { got = append(got, e) })
	in.Answer([]byte("v=0\r\n"))
	l.work()
	l.handleMessage(request("INVITE", "i1", "", 1), udpPeer) // RFC 6026: absorbed
	if m := l.sentMethods(); !slices.Equal(m, []string{"100", "200"}) {
		t.Fatalf("sent %v", m)
	}
	l.advance(31 * time.Second)
	if n := len(l.sent); n != 11 { // 100; 200 at 0 0.5 1.5 3.5 7.5 11.5 15.5 19.5 23.5 27.5
		t.Errorf("sent %d: %v, want 100 and ten 200s", n, l.sentMethods())
	}
	if slices.Contains(l.sentMethods(), "BYE") {
		t.Fatal("BYE before 64*T1")
	}
	l.advance(2 * time.Second)
	if m := l.sentMethods(); m[len(m)-1] != "BYE" && !slices.Contains(m, "BYE") {
		t.Fatalf("no BYE after 64*T1: %v", m)
	}
	if len(got) != 1 {
		t.Fatalf("events %v, want one", got)
	}
	if _, ok := got[0].(Lost); !ok {
		t.Errorf("event %#v, want Lost", got[0])
	}
	l.advance(40 * time.Second)
	if len(l.legs) != 0 || len(l.serverTxs) != 0 || len(l.clientTxs) != 0 || len(l.timers) != 0 {
		t.Errorf("left behind: %d legs, %d + %d transactions, %d timers", len(l.legs), len(l.serverTxs), len(l.clientTxs), len(l.timers))
	}
}

func TestBye_WaitsForACK(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	in := l.receiveInvite(t)
	in.Answer(nil)
	in.Leg().Bye(Reason{})
	l.work()
	if slices.Contains(l.sentMethods(), "BYE") {
		t.Fatal("BYE before the ACK (RFC 3261 §15)")
	}
	l.handleMessage(request("ACK", "a1", l.localTag(), 1), udpPeer)
	if m := l.sentMethods(); m[len(m)-1] != "BYE" {
		t.Fatalf("no BYE after the ACK: %v", m)
	}
}

func TestInvite_RetryOfRejectedCallGetsSameRejection(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	l.receiveInvite(t).Reject(404, "", 0)
	l.work()
	l.handleMessage(request("INVITE", "i2", "", 2), udpPeer)
	if m := l.sentMethods(); !slices.Equal(m, []string{"100", "404", "404"}) {
		t.Errorf("sent %v, want the same rejection", m)
	}
	select {
	case <-l.calls:
		t.Error("the switch got a second call")
	default:
	}
}

func TestInvite_MergedRequestGets482(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	l.receiveInvite(t)
	l.handleMessage(request("INVITE", "other-way", "", 1), udpPeer)
	if m := l.sentMethods(); m[len(m)-1] != "482" {
		t.Errorf("sent %v, want 482 (RFC 3261 §8.2.2.2)", m)
	}
}

func TestDialog_OutOfOrderAndUnknownDialogRefused(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	in := l.receiveInvite(t)
	in.Listen(func(Event) {})
	in.Answer(nil)
	l.work()
	tag := l.localTag()
	l.handleMessage(request("ACK", "a1", tag, 1), udpPeer)
	l.handleMessage(request("INVITE", "r1", tag, 5), udpPeer)
	l.handleMessage(request("INFO", "n1", tag, 4), udpPeer)
	l.handleMessage(request("INVITE", "r2", tag, 6), udpPeer)
	l.handleMessage(request("BYE", "b1", "nobody", 7), udpPeer)
	l.handleMessage(request("BYE", "b2", tag, 8), udpPeer)
	want := []string{
		"100", "200",
		"100",        // the re-INVITE
		"500",        // §12.2.2: lower CSeq
		"500",        // §14.2: one is pending
		"481",        // no such dialog
		"200", "487", // BYE ends the pending one (§15.1.2)
	}
	if m := l.sentMethods(); !slices.Equal(m, want) {
		t.Errorf("sent %v, want %v", m, want)
	}
}

func TestTimers_FireInOrder(t *testing.T) {
	t.Parallel()
	var h timers
	all := make([]timer, 1000)
	for i := range all {
		h.set(&all[i], time.Duration((i*7919)%1000))
	}
	for i := range all {
		if i%3 == 0 {
			h.stop(&all[i])
		}
		if i%3 == 1 {
			h.set(&all[i], time.Duration((i*104729)%1000))
		}
	}
	last, n := time.Duration(-1), 0
	for x := h.popDue(2000); x != nil; x = h.popDue(2000) {
		if x.at < last {
			t.Fatalf("timer of %d after one of %d", x.at, last)
		}
		last, n = x.at, n+1
	}
	if n != 666 {
		t.Errorf("%d timers fired, want 666", n)
	}
}

// TestAdmission_ForgetsFinishedInvites: admission forgets an INVITE with its transaction, or at once if it got none.
func TestAdmission_ForgetsFinishedInvites(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	good := request("INVITE", "i1", "", 1)
	bad := strings.Replace(request("INVITE", "i2", "", 1), "From: ", "Fro: ", 1)
	for _, raw := range []string{good, bad} {
		l.srv.receive(raw, udpPeer, false)
	}
	if len(l.admittedInvites) != 2 {
		t.Fatalf("%d INVITEs remembered, want 2", len(l.admittedInvites))
	}
	l.work()
	in := <-l.calls
	in.Reject(486, "", 0)
	l.work()
	l.drain(nil, l.finishedInvites)
	l.finishedInvites = nil
	if len(l.admittedInvites) != 1 {
		t.Errorf("%d INVITEs remembered, want the sound one only", len(l.admittedInvites))
	}
	l.advance(40 * time.Second)
	l.drain(nil, l.finishedInvites)
	if len(l.admittedInvites) != 0 {
		t.Errorf("%d INVITEs remembered after their end", len(l.admittedInvites))
	}
}

func TestAdmission_FullQueueRefusesInvitesOnly(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	l.srv.limits.QueueDepth, l.depth = 100, 100
	for i := range 30 {
		l.srv.receive(request("INVITE", fmt.Sprint("i", i), "", i+1), udpPeer, false)
	}
	refused := len(l.sent)
	if refused != 5 || l.srv.stats.rejected.Load() != 5 { // beyond a quarter of 100
		t.Errorf("%d refused, want 5: %v", refused, l.sentMethods())
	}
	if !strings.HasPrefix(l.sent[0], "SIP/2.0 503 ") || !strings.Contains(l.sent[0], "Retry-After: 5\r\n") || !strings.Contains(l.sent[0], ";tag=") {
		t.Errorf("refused with:\n%s", l.sent[0])
	}
	l.srv.receive(request("INVITE", "i3", "", 4), udpPeer, false) // retransmission of an admitted one
	l.srv.receive(request("BYE", "b", "tag", 40), udpPeer, false)
	if len(l.sent) != refused {
		t.Errorf("more was refused: %v", l.sentMethods())
	}
}
