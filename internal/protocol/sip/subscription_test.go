package sip_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
)

// fakeMailbox is the source of an event package; the test sets its state.
type fakeMailbox struct{ state atomic.Value }

func newFakeMailbox() *fakeMailbox {
	l := &fakeMailbox{}
	l.state.Store("off")
	return l
}

func (l *fakeMailbox) Event() string { return "message-summary" }

func (l *fakeMailbox) ContentType() string { return "application/simple-message-summary" }

func (l *fakeMailbox) ResolveSubject(_ context.Context, account string, _ sipmsg.URI) (string, bool, error) {
	return account, true, nil
}

func (l *fakeMailbox) Body(_ context.Context, subject string, resource sipmsg.URI) ([]byte, bool, error) {
	return fmt.Appendf(nil, "%s %s", subject, l.state.Load()), resource.User != "nobody", nil
}

func (l *fakeMailbox) SetVersion(body []byte, _ uint32) []byte { return body }

// bobsMailbox is the source of an event package with versions, in which every account means the mailbox of Bob.
type bobsMailbox struct {
	*fakeMailbox
	known atomic.Bool
}

func (l *bobsMailbox) ResolveSubject(context.Context, string, sipmsg.URI) (string, bool, error) {
	return "bob", l.known.Load(), nil
}

func (l *bobsMailbox) SetVersion(body []byte, n uint32) []byte {
	return fmt.Appendf(nil, "%s %d", body, n)
}

// testSubscriber is a peer with its credentials and one subscription.
type testSubscriber struct {
	*peer
	dialog string
	login  challengeAnswer
}

// challengeAnswer returns an Authorization line for one challenge, with the next nonce count each time.
type challengeAnswer func() string

const summary = "Event: message-summary\nAccept: application/simple-message-summary\n"

// challengedSubscribe sends a SUBSCRIBE and returns the function that answers its challenge.
func challengedSubscribe(p *peer, callID string) challengeAnswer {
	p.t.Helper()
	p.sendRequest("SUBSCRIBE", "alice", callID, 1, summary)
	c, n := headerValue(p.wantMessage("SIP/2.0 401"), "WWW-Authenticate"), 0
	return func() string {
		n++
		return "Authorization: " + digestAuthorization(c, "alice", "secret", "SUBSCRIBE", n) + "\n"
	}
}

func newTestSubscriber(t *testing.T, server *testServer, callID string) *testSubscriber {
	t.Helper()
	p := newPeer(t, "udp", server)
	w := &testSubscriber{peer: p, login: challengedSubscribe(p, callID)}
	p.sendRequest("SUBSCRIBE", "alice", callID, 2, summary+"Expires: 600\n"+w.login())
	ok := p.wantMessage("SIP/2.0 200")
	if headerValue(ok, "Expires") != "600" || headerValue(ok, "Contact") == "" {
		t.Errorf("granted:\n%s", ok)
	}
	w.dialog = "From: " + headerValue(ok, "From") + "\nTo: " + headerValue(ok, "To") + "\nCall-ID: " + callID + "\n"
	return w
}

// wantNotify expects a NOTIFY and answers it.
func (w *testSubscriber) wantNotify(state, body string, status int) string {
	w.t.Helper()
	m := w.wantMessage("NOTIFY ")
	if got := headerValue(m, "Subscription-State"); !strings.HasPrefix(got, state) || !strings.HasSuffix(m, "\r\n\r\n"+body) || headerValue(m, "Event") != "message-summary" {
		w.t.Errorf("want %s with %q, got:\n%s", state, body, m)
	}
	w.respond(m, status, "", "")
	return m
}

func TestSubscribe_NotifiesEachChange(t *testing.T) {
	t.Parallel()
	l := newFakeMailbox()
	server := newTestServer(t, sip.Config{Accounts: newFakeDirectory().addAccount("alice", "secret"),
		EventPackages: []sip.EventPackage{l}})
	w := newTestSubscriber(t, server, "w1")
	first := w.wantNotify("active;expires=5", "id-alice off", 200)
	if headerValue(first, "Call-ID") != "w1" || !strings.Contains(headerValue(first, "To"), "tag=fw1") || headerValue(first, "Content-Type") != "application/simple-message-summary" {
		t.Errorf("first:\n%s", first)
	}
	l.state.Store("on")
	if at := server.NotifySubscribers("message-summary", "id-alice"); len(at) != 1 || at[0].String() != w.conn.LocalAddr().String() {
		t.Errorf("watched at %v", at)
	}
	w.wantNotify("active;expires=5", "id-alice on", 200)
	if at := server.NotifySubscribers("message-summary", "id-bob"); len(at) != 0 {
		t.Errorf("somebody else's: %v", at)
	}
	w.sendInDialog("SUBSCRIBE", w.dialog, 3, summary+w.login()+"Expires: 3600\n", "")
	w.wantMessage("SIP/2.0 200")
	w.wantNotify("active;expires=35", "id-alice on", 200)
	w.sendInDialog("SUBSCRIBE", w.dialog, 3, summary+w.login()+"Expires: 3600\n", "")
	w.wantMessage("SIP/2.0 500")
	w.sendInDialog("SUBSCRIBE", w.dialog, 4, summary+w.login()+"Expires: 0\n", "")
	w.wantMessage("SIP/2.0 200")
	w.wantNotify("terminated;reason=timeout", "id-alice on", 200)
	w.sendInDialog("SUBSCRIBE", w.dialog, 5, summary+w.login(), "")
	w.wantMessage("SIP/2.0 481")
	if at := server.SubscriberAddrs("message-summary", "id-alice"); len(at) != 0 {
		t.Errorf("still watched at %v", at)
	}
}

func TestSubscribe_RefusedNotifyEndsSubscription(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{Accounts: newFakeDirectory().addAccount("alice", "secret"),
		EventPackages: []sip.EventPackage{newFakeMailbox()}})
	w := newTestSubscriber(t, server, "w1")
	w.wantNotify("active", "id-alice off", 481)
	for server.Stats().Panics == 0 && len(server.SubscriberAddrs("message-summary", "id-alice")) > 0 {
		runtime.Gosched()
	}
	server.NotifySubscribers("message-summary", "id-alice")
	w.wantSilence(100 * time.Millisecond)
}

func TestSubscribe_Refused(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{Accounts: newFakeDirectory().addAccount("alice", "secret"),
		EventPackages: []sip.EventPackage{newFakeMailbox()}})
	p := newPeer(t, "udp", server)
	login := challengedSubscribe(p, "w1")
	for i, c := range []struct{ extra, want string }{
		{"Event: presence\n" + login(), "SIP/2.0 489"}, {login(), "SIP/2.0 489"}, {summary + "Expires: 30\n" + login(), "SIP/2.0 423"},
		{summary + "Authorization: Digest username=\"alice\"\n", "SIP/2.0 401"},
	} {
		p.sendRequest("SUBSCRIBE", "alice", "w1", 2+i, c.extra)
		m := p.wantMessage(c.want)
		if c.want == "SIP/2.0 489" && headerValue(m, "Allow-Events") != "refer, message-summary" {
			t.Errorf("489 without what is known:\n%s", m)
		}
	}
	p.sendInDialog("SUBSCRIBE", "From: <sip:alice@x>;tag=a\nTo: <sip:alice@x>;tag=b\nCall-ID: w1\n", 9, summary+login(), "")
	p.wantMessage("SIP/2.0 481")
	p = newPeer(t, "udp", newTestServer(t, sip.Config{}))
	p.sendRequest("SUBSCRIBE", "alice", "w1", 1, summary)
	p.wantMessage("SIP/2.0 405")
}

func TestSubscribe_FetchNotifiedOnce(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{Accounts: newFakeDirectory().addAccount("alice", "secret"),
		EventPackages: []sip.EventPackage{newFakeMailbox()}})
	p := newPeer(t, "udp", server)
	login := challengedSubscribe(p, "w1")
	p.sendRequest("SUBSCRIBE", "alice", "w1", 2, summary+"Expires: 0\n"+login())
	p.wantMessage("SIP/2.0 200")
	(&testSubscriber{peer: p}).wantNotify("terminated;reason=timeout", "id-alice off", 200)
	if at := server.SubscriberAddrs("message-summary", "id-alice"); len(at) != 0 {
		t.Errorf("watched at %v", at)
	}
}

func TestSubscribe_LimitPerAccount(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{Accounts: newFakeDirectory().addAccount("alice", "secret"),
		EventPackages: []sip.EventPackage{newFakeMailbox()}, Limits: sip.Limits{Subscriptions: 2}})
	var all []*testSubscriber
	for i := range 3 {
		w := newTestSubscriber(t, server, fmt.Sprint("w", i))
		w.wantNotify("active", "id-alice off", 200)
		all = append(all, w)
	}
	if at := server.NotifySubscribers("message-summary", "id-alice"); len(at) != 2 || at[0].String() != all[1].conn.LocalAddr().String() {
		t.Errorf("told %v", at)
	}
	all[2].wantNotify("active", "id-alice off", 200)
	again := &testSubscriber{peer: all[2].peer}
	login := challengedSubscribe(again.peer, "w9") // the phone restarted and lost its old subscription
	again.sendRequest("SUBSCRIBE", "alice", "w9", 2, summary+login())
	again.wantMessage("SIP/2.0 200")
	again.wantNotify("active", "id-alice off", 200)
	if at := server.SubscriberAddrs("message-summary", "id-alice"); len(at) != 2 {
		t.Errorf("watched at %v", at)
	}
}

func TestSubscribe_Expires(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	server := newTestServer(t, sip.Config{Accounts: newFakeDirectory().addAccount("alice", "secret"),
		EventPackages: []sip.EventPackage{newFakeMailbox()}, Now: now})
	w := newTestSubscriber(t, server, "w1")
	w.wantNotify("active", "id-alice off", 200)
	ahead.Store(int64(11 * time.Minute))
	w.wantNotify("terminated;reason=timeout", "id-alice off", 200)
}

func TestNotify_Unsolicited(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{})
	p := newPeer(t, "udp", server)
	b := sip.Binding{Contact: "sip:alice@192.0.2.1:5060", Source: p.conn.LocalAddr().(*net.UDPAddr).AddrPort(), Transport: sipmsg.UDP}
	done := make(chan int, 1)
	go func() {
		status, _ := server.NotifyWithBody(context.Background(), b, "sip:alice@x", "message-summary", "application/simple-message-summary", []byte("off"))
		done <- status
	}()
	m := p.wantMessage("NOTIFY sip:alice@192.0.2.1:5060")
	if headerValue(m, "Subscription-State") != "terminated" || !strings.HasSuffix(m, "off") {
		t.Errorf("got:\n%s", m)
	}
	p.respond(m, 489, "x", "")
	if status := <-done; status != 489 {
		t.Errorf("status %d", status)
	}
}

// A subject need not be the account's own: phones of two users subscribe to that of a third.
func TestSubscribe_SubjectSharedByAccounts(t *testing.T) {
	t.Parallel()
	l := &bobsMailbox{fakeMailbox: newFakeMailbox()}
	l.known.Store(true)
	server := newTestServer(t, sip.Config{Accounts: newFakeDirectory().addAccount("alice", "secret"),
		EventPackages: []sip.EventPackage{l}})
	one, two := newTestSubscriber(t, server, "w1"), newTestSubscriber(t, server, "w2")
	one.wantNotify("active", "bob off 0", 200)
	two.wantNotify("active", "bob off 0", 200)
	l.state.Store("on")
	if at := server.NotifySubscribers("message-summary", "bob"); len(at) != 2 {
		t.Errorf("told %v", at)
	}
	if at := server.NotifySubscribers("message-summary", "id-alice"); len(at) != 0 {
		t.Errorf("the account is no subject: %v", at)
	}
	one.wantNotify("active", "bob on 1", 200)
	two.wantNotify("active", "bob on 1", 200)
	l.known.Store(false)
	p := newPeer(t, "udp", server)
	login := challengedSubscribe(p, "w3")
	p.sendRequest("SUBSCRIBE", "alice", "w3", 2, summary+login())
	p.wantMessage("SIP/2.0 404")
}
