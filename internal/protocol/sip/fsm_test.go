package sip

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// testShard is one shard without goroutines or sockets, with a manual clock.
type lab struct {
	*shard
	sent  []string
	calls chan *Inbound
}

func (l *lab) send(_ flow, b []byte)                 { l.sent = append(l.sent, string(b)) }
func (l *lab) Invite(_ context.Context, in *Inbound) { l.calls <- in }

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{calls: make(chan *Inbound, 16)}
	start := time.Unix(1e9, 0)
	srv := newServer(Config{Accounts: AnySource{}, Now: func() time.Time {
		if l.shard == nil {
			return start
		}
		return start.Add(l.now)
	}}, l)
	srv.sockets = []*socket{{addr: netip.MustParseAddrPort("127.0.0.1:5060")}}
	srv.host.init(srv)
	srv.ctx, srv.cancel = context.WithCancel(context.Background())
	t.Cleanup(srv.cancel)
	l.shard = newShard(srv, l, 100)
	srv.shards = []*shard{l.shard}
	srv.out = l
	return l
}

// advance moves the clock and fires timers when they are due.
func (l *lab) pass(d time.Duration) {
	until := l.now + d
	for len(l.timers) > 0 && l.timers[0].at <= until {
		l.fire(l.timers[0].at)
	}
	l.fire(until)
}

// work handles all queued items.
func (l *lab) work() {
	for items := l.take(nil, nil); len(items) > 0; items = l.take(nil, nil) {
		for i := range items {
			l.handle(&items[i])
		}
	}
}

// sentMethods returns the method or status of each message sent.
func (l *lab) methods() (all []string) {
	for _, s := range l.sent {
		w := strings.Fields(s)
		if strings.HasPrefix(s, "SIP/2.0") {
			all = append(all, w[1])
		} else {
			all = append(all, w[0])
		}
	}
	return all
}

var udpPeer = flow{addr: netip.MustParseAddrPort("192.0.2.1:5060")}

func tcpPeer(l *lab) flow {
	return flow{addr: udpPeer.addr, conn: newConn(l.srv, connKey{kind: TCP, addr: udpPeer.addr})}
}

const sample = "INVITE sip:bob@example.com SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:5060;branch=z9hG4bK0000000000000007;rport\r\n" +
	"Max-Forwards: 70\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:bob@example.com>\r\nCall-ID: c1\r\nCSeq: 1 INVITE\r\n" +
	"Contact: <sip:a@192.0.2.1>\r\nContent-Length: 0\r\n\r\n"

func reply7(status int, method, tag string) string {
	return fmt.Sprintf("SIP/2.0 %d x\r\nVia: SIP/2.0/UDP 127.0.0.1:5060;branch=z9hG4bK0000000000000007\r\n"+
		"From: <sip:a@b>;tag=1\r\nTo: <sip:bob@example.com>;tag=%s\r\nCall-ID: c1\r\nCSeq: 1 %s\r\nContent-Length: 0\r\n\r\n", status, tag, method)
}

// RFC 3261 §17.1.1.2 and §17.1.2.2: retransmissions without a response.
func TestRequestsAreRepeatedUntilTimeout(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		kind txKind
		tcp  bool
		want []float64 // seconds at which it is sent
	}{
		{"INVITE over UDP doubles (A)", inviteTx, false, []float64{0, .5, 1.5, 3.5, 7.5, 15.5, 31.5}},
		{"others over UDP double up to T2 (E)", plainTx, false, []float64{0, .5, 1.5, 3.5, 7.5, 11.5, 15.5, 19.5, 23.5, 27.5, 31.5}},
		{"INVITE over TCP is sent once", inviteTx, true, []float64{0}},
		{"others over TCP are sent once", plainTx, true, []float64{0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			f := udpPeer
			if c.tcp {
				f = tcpPeer(l)
			}
			var at []float64
			status, ended := 0, time.Duration(0)
			l.start(clientKey{7, c.kind}, f, []byte(sample), func(m *message, s int) { status, ended = s, l.now })
			for seen := 0; l.now < 40*time.Second; l.pass(100 * time.Millisecond) {
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
			if len(l.clients) != 0 || len(l.timers) != 0 || len(l.waiting) != 0 {
				t.Errorf("left behind: %d transactions, %d timers, %d waiting", len(l.clients), len(l.timers), len(l.waiting))
			}
		})
	}
}

func TestProvisionalStopsInviteRepetition(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	var got []int
	l.start(clientKey{7, inviteTx}, udpPeer, []byte(sample), func(_ *message, s int) { got = append(got, s) })
	l.message(reply7(180, "INVITE", "x"), udpPeer)
	l.pass(100 * time.Second)
	if len(l.sent) != 1 || !slices.Equal(got, []int{180}) {
		t.Errorf("sent %d times and heard %v, want once and [180]", len(l.sent), got)
	}
}

func TestFailureIsAcknowledgedEachTimeItComes(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	var got []int
	l.start(clientKey{7, inviteTx}, udpPeer, []byte(sample), func(_ *message, s int) { got = append(got, s) })
	for range 3 {
		l.message(reply7(486, "INVITE", "x"), udpPeer)
		l.pass(time.Second)
	}
	if m := l.methods(); !slices.Equal(m, []string{"INVITE", "ACK", "ACK", "ACK"}) {
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
	l.pass(28 * time.Second) // 31 s after the failure
	if len(l.clients) != 1 {
		t.Error("the transaction ends before timer D")
	}
	l.pass(time.Second)
	if len(l.clients) != 0 {
		t.Error("the transaction outlives timer D")
	}
}

func TestFinishedRequestLingersForTimerK(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	heard := 0
	l.start(clientKey{7, plainTx}, udpPeer, []byte(sample), func(*message, int) { heard++ })
	l.message(reply7(200, "BYE", "x"), udpPeer)
	l.message(reply7(200, "BYE", "x"), udpPeer)
	if heard != 1 || len(l.clients) != 1 {
		t.Errorf("heard %d responses with %d transactions, want 1 and 1", heard, len(l.clients))
	}
	l.pass(5 * time.Second)
	if len(l.clients) != 0 {
		t.Error("the transaction outlives timer K")
	}
}

func request(method, branch, toTag string, seq int) string {
	if toTag != "" {
		toTag = ";tag=" + toTag
	}
	return fmt.Sprintf("%s sip:bob@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK%s;rport\r\nMax-Forwards: 70\r\n"+
		"From: <sip:a@b>;tag=1\r\nTo: <sip:bob@127.0.0.1>%s\r\nCall-ID: c1\r\nCSeq: %d %s\r\nContact: <sip:a@192.0.2.1>\r\nContent-Length: 0\r\n\r\n",
		method, branch, toTag, seq, method)
}

func TestRepeatedRequestGetsTheSameAnswerFor32s(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for range 3 {
		l.message(request("OPTIONS", "o1", "", 1), udpPeer)
		l.pass(10 * time.Second)
	}
	if len(l.sent) != 3 || l.sent[0] != l.sent[1] || l.sent[1] != l.sent[2] {
		t.Errorf("answers differ:\n%s", strings.Join(l.sent, "\n"))
	}
	l.pass(2 * time.Second)
	if len(l.servers) != 0 {
		t.Error("the transaction outlives timer J")
	}
	l.message(request("OPTIONS", "o2", "", 1), tcpPeer(l))
	if len(l.servers) != 0 {
		t.Error("over TCP a finished transaction is kept")
	}
}

// receiveInvite receives an INVITE and returns the call that the handler got.
func (l *lab) ring(t *testing.T) *Inbound {
	t.Helper()
	l.message(request("INVITE", "i1", "", 1), udpPeer)
	in := <-l.calls
	l.work()
	return in
}

func (l *lab) localTag() string {
	return l.sent[0][strings.Index(l.sent[0], "To: "):][len("To: <sip:bob@127.0.0.1>;tag="):][:16]
}

func TestRejectionIsRepeatedUntilACK(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	in := l.ring(t)
	in.Reject(486, "", 0)
	l.work()
	l.pass(8 * time.Second) // G: 0, 0.5, 1.5, 3.5, 7.5
	if m := l.methods(); !slices.Equal(m, []string{"100", "486", "486", "486", "486", "486"}) {
		t.Fatalf("sent %v", m)
	}
	l.message(request("ACK", "i1", l.localTag(), 1), udpPeer)
	l.pass(4 * time.Second)
	if len(l.sent) != 6 || len(l.servers) != 1 {
		t.Errorf("after the ACK: %d sent, %d transactions, want 6 and 1 (timer I)", len(l.sent), len(l.servers))
	}
	l.pass(2 * time.Second)
	if len(l.servers) != 0 || len(l.legs) != 0 {
		t.Errorf("left behind: %d transactions, %d legs", len(l.servers), len(l.legs))
	}
}

func TestUnacknowledgedAnswerIsRepeatedThenHungUp(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	in := l.ring(t)
	var got []Event
	in.Listen(func(e Event) { got = append(got, e) })
	in.Answer([]byte("v=0\r\n"))
	l.work()
	l.message(request("INVITE", "i1", "", 1), udpPeer) // RFC 6026: absorbed
	if m := l.methods(); !slices.Equal(m, []string{"100", "200"}) {
		t.Fatalf("sent %v", m)
	}
	l.pass(31 * time.Second)
	if n := len(l.sent); n != 11 { // 100; 200 at 0 0.5 1.5 3.5 7.5 11.5 15.5 19.5 23.5 27.5
		t.Errorf("sent %d: %v, want 100 and ten 200s", n, l.methods())
	}
	if slices.Contains(l.methods(), "BYE") {
		t.Fatal("BYE before 64*T1")
	}
	l.pass(2 * time.Second)
	if m := l.methods(); m[len(m)-1] != "BYE" && !slices.Contains(m, "BYE") {
		t.Fatalf("no BYE after 64*T1: %v", m)
	}
	if len(got) != 1 {
		t.Fatalf("events %v, want one", got)
	}
	if _, ok := got[0].(Lost); !ok {
		t.Errorf("event %#v, want Lost", got[0])
	}
	l.pass(40 * time.Second)
	if len(l.legs) != 0 || len(l.servers) != 0 || len(l.clients) != 0 || len(l.timers) != 0 {
		t.Errorf("left behind: %d legs, %d + %d transactions, %d timers", len(l.legs), len(l.servers), len(l.clients), len(l.timers))
	}
}

func TestByeWaitsForTheACK(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	in := l.ring(t)
	in.Answer(nil)
	in.Leg().Bye(Reason{})
	l.work()
	if slices.Contains(l.methods(), "BYE") {
		t.Fatal("BYE before the ACK (RFC 3261 §15)")
	}
	l.message(request("ACK", "a1", l.localTag(), 1), udpPeer)
	if m := l.methods(); m[len(m)-1] != "BYE" {
		t.Fatalf("no BYE after the ACK: %v", m)
	}
}

func TestSecondInviteOfARejectedCallIsRejectedAlike(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.ring(t).Reject(404, "", 0)
	l.work()
	l.message(request("INVITE", "i2", "", 2), udpPeer)
	if m := l.methods(); !slices.Equal(m, []string{"100", "404", "404"}) {
		t.Errorf("sent %v, want the same rejection", m)
	}
	select {
	case <-l.calls:
		t.Error("the switch got a second call")
	default:
	}
}

func TestMergedInviteIsALoop(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.ring(t)
	l.message(request("INVITE", "other-way", "", 1), udpPeer)
	if m := l.methods(); m[len(m)-1] != "482" {
		t.Errorf("sent %v, want 482 (RFC 3261 §8.2.2.2)", m)
	}
}

func TestRequestsOutOfOrderAndOutsideDialogs(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	in := l.ring(t)
	in.Listen(func(Event) {})
	in.Answer(nil)
	l.work()
	tag := l.localTag()
	l.message(request("ACK", "a1", tag, 1), udpPeer)
	l.message(request("INVITE", "r1", tag, 5), udpPeer)
	l.message(request("INFO", "n1", tag, 4), udpPeer)
	l.message(request("INVITE", "r2", tag, 6), udpPeer)
	l.message(request("BYE", "b1", "nobody", 7), udpPeer)
	l.message(request("BYE", "b2", tag, 8), udpPeer)
	want := []string{
		"100", "200",
		"100",        // the re-INVITE
		"500",        // §12.2.2: lower CSeq
		"500",        // §14.2: one is pending
		"481",        // no such dialog
		"200", "487", // BYE ends the pending one (§15.1.2)
	}
	if m := l.methods(); !slices.Equal(m, want) {
		t.Errorf("sent %v, want %v", m, want)
	}
}

func TestTimersFireInOrder(t *testing.T) {
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
	for x := h.due(2000); x != nil; x = h.due(2000) {
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
func TestAdmissionForgetsInvites(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	good := request("INVITE", "i1", "", 1)
	bad := strings.Replace(request("INVITE", "i2", "", 1), "From: ", "Fro: ", 1)
	for _, raw := range []string{good, bad} {
		l.srv.receive(raw, udpPeer, false)
	}
	if len(l.known) != 2 {
		t.Fatalf("%d INVITEs remembered, want 2", len(l.known))
	}
	l.work()
	in := <-l.calls
	in.Reject(486, "", 0)
	l.work()
	l.take(nil, l.forgotten)
	l.forgotten = nil
	if len(l.known) != 1 {
		t.Errorf("%d INVITEs remembered, want the sound one only", len(l.known))
	}
	l.pass(40 * time.Second)
	l.take(nil, l.forgotten)
	if len(l.known) != 0 {
		t.Errorf("%d INVITEs remembered after their end", len(l.known))
	}
}

func TestFullQueueRefusesInvitesBeforeAnythingElse(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.srv.limits.QueueDepth, l.depth = 100, 100
	for i := range 30 {
		l.srv.receive(request("INVITE", fmt.Sprint("i", i), "", i+1), udpPeer, false)
	}
	refused := len(l.sent)
	if refused != 5 || l.srv.stats.rejected.Load() != 5 { // beyond a quarter of 100
		t.Errorf("%d refused, want 5: %v", refused, l.methods())
	}
	if !strings.HasPrefix(l.sent[0], "SIP/2.0 503 ") || !strings.Contains(l.sent[0], "Retry-After: 5\r\n") || !strings.Contains(l.sent[0], ";tag=") {
		t.Errorf("refused with:\n%s", l.sent[0])
	}
	l.srv.receive(request("INVITE", "i3", "", 4), udpPeer, false) // retransmission of an admitted one
	l.srv.receive(request("BYE", "b", "tag", 40), udpPeer, false)
	if len(l.sent) != refused {
		t.Errorf("more was refused: %v", l.methods())
	}
}
