package sip

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/sip/transport"
)

// testShard is one shard without goroutines or sockets, with a manual clock.
type testShard struct {
	*shard
	sent  []string
	calls chan *Inbound
}

func (l *testShard) Send(_ transport.Flow, b []byte) { l.sent = append(l.sent, string(b)) }

func (l *testShard) Invite(_ context.Context, in *Inbound) { l.calls <- in }

func newTestShard(t *testing.T) *testShard {
	t.Helper()
	l := &testShard{calls: make(chan *Inbound, 16)}
	start := time.Unix(1e9, 0)
	srv := newServer(context.Background(), Config{Accounts: AnySource{}, Now: func() time.Time {
		if l.shard == nil {
			return start
		}
		return start.Add(l.now)
	}}, l)
	srv.layer = transport.NewDetached(srv.ctx, srv.layerConfig(), netip.MustParseAddrPort("127.0.0.1:5060"))
	t.Cleanup(srv.cancel)
	l.shard = newShard(srv, l, 100)
	srv.shards = []*shard{l.shard}
	srv.statelessSender = l
	return l
}

// advance moves the clock and fires timers when they are due.
func (l *testShard) advance(d time.Duration) {
	until := l.now + d
	for len(l.timers) > 0 && l.timers[0].at <= until {
		l.fireTimers(l.timers[0].at)
	}
	l.fireTimers(until)
}

// work handles all queued items.
func (l *testShard) work() {
	for items := l.drain(nil, nil); len(items) > 0; items = l.drain(nil, nil) {
		for i := range items {
			l.handleItem(&items[i])
		}
	}
}

// sentMethods returns the method or status of each message sent.
func (l *testShard) sentMethods() (all []string) {
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

var udpPeer = transport.Flow{Addr: netip.MustParseAddrPort("192.0.2.1:5060")}

func tcpPeer(l *testShard) transport.Flow {
	return transport.Flow{Addr: udpPeer.Addr, Conn: transport.NewConn(l.srv.layer,
		transport.ConnKey{Transport: sipmsg.TCP, Addr: udpPeer.Addr})}
}

const sampleInvite = "INVITE sip:bob@example.com SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:5060;branch=z9hG4bK0000000000000007;rport\r\n" +
	"Max-Forwards: 70\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:bob@example.com>\r\nCall-ID: c1\r\nCSeq: 1 INVITE\r\n" +
	"Contact: <sip:a@192.0.2.1>\r\nContent-Length: 0\r\n\r\n"

func sampleResponse(status int, method, tag string) string {
	return fmt.Sprintf("SIP/2.0 %d x\r\nVia: SIP/2.0/UDP 127.0.0.1:5060;branch=z9hG4bK0000000000000007\r\n"+
		"From: <sip:a@b>;tag=1\r\nTo: <sip:bob@example.com>;tag=%s\r\nCall-ID: c1\r\nCSeq: 1 %s\r\nContent-Length: 0\r\n\r\n", status, tag, method)
}

func request(method, branch, toTag string, seq int) string {
	if toTag != "" {
		toTag = ";tag=" + toTag
	}
	return fmt.Sprintf("%s sip:bob@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK%s;rport\r\nMax-Forwards: 70\r\n"+
		"From: <sip:a@b>;tag=1\r\nTo: <sip:bob@127.0.0.1>%s\r\nCall-ID: c1\r\nCSeq: %d %s\r\nContact: <sip:a@192.0.2.1>\r\nContent-Length: 0\r\n\r\n",
		method, branch, toTag, seq, method)
}

// receiveInvite receives an INVITE and returns the call that the handler got.
func (l *testShard) receiveInvite(t *testing.T) *Inbound {
	t.Helper()
	l.handleMessage(request("INVITE", "i1", "", 1), udpPeer)
	in := <-l.calls
	l.work()
	return in
}

func (l *testShard) localTag() string {
	return l.sent[0][strings.Index(l.sent[0], "To: "):][len("To: <sip:bob@127.0.0.1>;tag="):][:16]
}

// drainSent returns the messages sent since the last call.
func (l *testShard) drainSent() []string {
	sent := l.sent
	l.sent = nil
	return sent
}

func headerOfMessage(raw, name string) string {
	for _, line := range strings.Split(raw, "\r\n") {
		if n, v, ok := strings.Cut(line, ": "); ok && n == name {
			return v
		}
	}
	return ""
}

// receiveResponse receives a response to our request.
func (l *testShard) receiveResponse(request string, status int, tag, extra, body string) {
	to := headerOfMessage(request, "To")
	if tag != "" && !strings.Contains(to, "tag=") {
		to += ";tag=" + tag
	}
	if body != "" {
		extra += "Content-Type: application/sdp\r\n"
	}
	l.handleMessage(fmt.Sprintf("SIP/2.0 %d x\r\nVia: %s\r\nFrom: %s\r\nTo: %s\r\nCall-ID: %s\r\nCSeq: %s\r\nContact: <sip:bob@192.0.2.1>\r\n%sContent-Length: %d\r\n\r\n%s",
		status, headerOfMessage(request, "Via"), headerOfMessage(request, "From"), to, headerOfMessage(request, "Call-ID"), headerOfMessage(request, "CSeq"), extra, len(body), body), udpPeer)
}

// receiveRequest receives a request of the peer with additional fields and a body.
func (l *testShard) receiveRequest(method, branch, toTag string, seq int, extra, body string) {
	m := request(method, branch, toTag, seq)
	if body != "" {
		extra += "Content-Type: application/sdp\r\n"
	}
	m = strings.Replace(m, "Content-Length: 0\r\n\r\n", fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", extra, len(body), body), 1)
	l.handleMessage(m, udpPeer)
}

// answeredInbound returns an answered call of the peer.
func (l *testShard) answeredInbound(t *testing.T, extra string) (leg *Leg, tag string, got *[]Event) {
	t.Helper()
	l.receiveRequest("INVITE", "i1", "", 1, extra, "v=0\r\n")
	in := <-l.calls
	got = new([]Event)
	in.Listen(func(e Event) { *got = append(*got, e) })
	in.Answer([]byte("v=0\r\no=ours 1 1\r\n"))
	l.work()
	tag = l.localTag()
	l.receiveRequest("ACK", "a1", tag, 1, "", "")
	return in.Leg(), tag, got
}

// placeOutgoing places a call and returns its INVITE.
func (l *testShard) placeOutgoing(t *testing.T) (leg *Leg, invite string, got *[]Event) {
	t.Helper()
	got = new([]Event)
	leg, err := l.srv.Invite(context.Background(), Outgoing{URI: "sip:bob@192.0.2.1", SDP: []byte("v=0\r\no=ours 1 1\r\n")}, func(e Event) {
		*got = append(*got, e)
	})
	if err != nil {
		t.Fatal(err)
	}
	l.work()
	return leg, l.drainSent()[0], got
}
