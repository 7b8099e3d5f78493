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
)

// fakeMailbox is the source of an event package; the test sets its state.
type lamp struct{ state atomic.Value }

func newLamp() *lamp {
	l := &lamp{}
	l.state.Store("off")
	return l
}

func (l *lamp) topic() sip.Topic {
	return sip.Topic{Event: "message-summary", ContentType: "application/simple-message-summary",
		Body: func(_ context.Context, account string, resource sip.URI) ([]byte, bool, error) {
			return fmt.Appendf(nil, "%s %s", account, l.state.Load()), resource.User != "nobody", nil
		}}
}

// testSubscriber is a peer with its credentials and one subscription.
type watching struct {
	*peer
	dialog string
	login  login
}

// challengeAnswer returns an Authorization line for one challenge, with the next nonce count each time.
type login func() string

const summary = "Event: message-summary\nAccept: application/simple-message-summary\n"

// challengedSubscribe sends a SUBSCRIBE and returns the function that answers its challenge.
func asked(p *peer, callID string) login {
	p.t.Helper()
	p.ask("SUBSCRIBE", "alice", callID, 1, summary)
	c, n := headerOf(p.expect("SIP/2.0 401"), "WWW-Authenticate"), 0
	return func() string {
		n++
		return "Authorization: " + digest(c, "alice", "secret", "SUBSCRIBE", n) + "\n"
	}
}

func watch(t *testing.T, server *phone, callID string) *watching {
	t.Helper()
	p := newPeer(t, "udp", server)
	w := &watching{peer: p, login: asked(p, callID)}
	p.ask("SUBSCRIBE", "alice", callID, 2, summary+"Expires: 600\n"+w.login())
	ok := p.expect("SIP/2.0 200")
	if headerOf(ok, "Expires") != "600" || headerOf(ok, "Contact") == "" {
		t.Errorf("granted:\n%s", ok)
	}
	w.dialog = "From: " + headerOf(ok, "From") + "\nTo: " + headerOf(ok, "To") + "\nCall-ID: " + callID + "\n"
	return w
}

// wantNotify expects a NOTIFY and answers it.
func (w *watching) told(state, body string, status int) string {
	w.t.Helper()
	m := w.expect("NOTIFY ")
	if got := headerOf(m, "Subscription-State"); !strings.HasPrefix(got, state) || !strings.HasSuffix(m, "\r\n\r\n"+body) || headerOf(m, "Event") != "message-summary" {
		w.t.Errorf("want %s with %q, got:\n%s", state, body, m)
	}
	w.answer(m, status, "", "")
	return m
}

func TestSubscribersAreToldEachChange(t *testing.T) {
	t.Parallel()
	l := newLamp()
	server := listen(t, sip.Config{Accounts: newBook().add("alice", "secret"), Topics: []sip.Topic{l.topic()}})
	w := watch(t, server, "w1")
	first := w.told("active;expires=5", "id-alice off", 200)
	if headerOf(first, "Call-ID") != "w1" || !strings.Contains(headerOf(first, "To"), "tag=fw1") || headerOf(first, "Content-Type") != "application/simple-message-summary" {
		t.Errorf("first:\n%s", first)
	}
	l.state.Store("on")
	if at := server.Changed("message-summary", "id-alice"); len(at) != 1 || at[0].String() != w.conn.LocalAddr().String() {
		t.Errorf("watched at %v", at)
	}
	w.told("active;expires=5", "id-alice on", 200)
	if at := server.Changed("message-summary", "id-bob"); len(at) != 0 {
		t.Errorf("somebody else's: %v", at)
	}
	w.inside("SUBSCRIBE", w.dialog, 3, summary+w.login()+"Expires: 3600\n", "")
	w.expect("SIP/2.0 200")
	w.told("active;expires=35", "id-alice on", 200)
	w.inside("SUBSCRIBE", w.dialog, 3, summary+w.login()+"Expires: 3600\n", "")
	w.expect("SIP/2.0 500")
	w.inside("SUBSCRIBE", w.dialog, 4, summary+w.login()+"Expires: 0\n", "")
	w.expect("SIP/2.0 200")
	w.told("terminated;reason=timeout", "id-alice on", 200)
	w.inside("SUBSCRIBE", w.dialog, 5, summary+w.login(), "")
	w.expect("SIP/2.0 481")
	if at := server.Watched("message-summary", "id-alice"); len(at) != 0 {
		t.Errorf("still watched at %v", at)
	}
}

func TestWhoDoesNotAnswerNotifyIsNotToldAgain(t *testing.T) {
	t.Parallel()
	server := listen(t, sip.Config{Accounts: newBook().add("alice", "secret"), Topics: []sip.Topic{newLamp().topic()}})
	w := watch(t, server, "w1")
	w.told("active", "id-alice off", 481)
	for server.Stats().Panics == 0 && len(server.Watched("message-summary", "id-alice")) > 0 {
		runtime.Gosched()
	}
	server.Changed("message-summary", "id-alice")
	w.silent(100 * time.Millisecond)
}

func TestSubscriptionsAreRefused(t *testing.T) {
	t.Parallel()
	server := listen(t, sip.Config{Accounts: newBook().add("alice", "secret"), Topics: []sip.Topic{newLamp().topic()}})
	p := newPeer(t, "udp", server)
	login := asked(p, "w1")
	for i, c := range []struct{ extra, want string }{
		{"Event: presence\n" + login(), "SIP/2.0 489"}, {login(), "SIP/2.0 489"}, {summary + "Expires: 30\n" + login(), "SIP/2.0 423"},
		{summary + "Authorization: Digest username=\"alice\"\n", "SIP/2.0 401"},
	} {
		p.ask("SUBSCRIBE", "alice", "w1", 2+i, c.extra)
		m := p.expect(c.want)
		if c.want == "SIP/2.0 489" && headerOf(m, "Allow-Events") != "refer, message-summary" {
			t.Errorf("489 without what is known:\n%s", m)
		}
	}
	p.inside("SUBSCRIBE", "From: <sip:alice@x>;tag=a\nTo: <sip:alice@x>;tag=b\nCall-ID: w1\n", 9, summary+login(), "")
	p.expect("SIP/2.0 481")
	p = newPeer(t, "udp", listen(t, sip.Config{}))
	p.ask("SUBSCRIBE", "alice", "w1", 1, summary)
	p.expect("SIP/2.0 405")
}

func TestAFetchIsToldOnce(t *testing.T) {
	t.Parallel()
	server := listen(t, sip.Config{Accounts: newBook().add("alice", "secret"), Topics: []sip.Topic{newLamp().topic()}})
	p := newPeer(t, "udp", server)
	login := asked(p, "w1")
	p.ask("SUBSCRIBE", "alice", "w1", 2, summary+"Expires: 0\n"+login())
	p.expect("SIP/2.0 200")
	(&watching{peer: p}).told("terminated;reason=timeout", "id-alice off", 200)
	if at := server.Watched("message-summary", "id-alice"); len(at) != 0 {
		t.Errorf("watched at %v", at)
	}
}

func TestAnAccountHasAFewSubscriptionsOnly(t *testing.T) {
	t.Parallel()
	server := listen(t, sip.Config{Accounts: newBook().add("alice", "secret"), Topics: []sip.Topic{newLamp().topic()}, Limits: sip.Limits{Subscriptions: 2}})
	var all []*watching
	for i := range 3 {
		w := watch(t, server, fmt.Sprint("w", i))
		w.told("active", "id-alice off", 200)
		all = append(all, w)
	}
	if at := server.Changed("message-summary", "id-alice"); len(at) != 2 || at[0].String() != all[1].conn.LocalAddr().String() {
		t.Errorf("told %v", at)
	}
	all[2].told("active", "id-alice off", 200)
	again := &watching{peer: all[2].peer}
	login := asked(again.peer, "w9") // the phone restarted and lost its old subscription
	again.ask("SUBSCRIBE", "alice", "w9", 2, summary+login())
	again.expect("SIP/2.0 200")
	again.told("active", "id-alice off", 200)
	if at := server.Watched("message-summary", "id-alice"); len(at) != 2 {
		t.Errorf("watched at %v", at)
	}
}

func TestSubscriptionsEndByTime(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	server := listen(t, sip.Config{Accounts: newBook().add("alice", "secret"), Topics: []sip.Topic{newLamp().topic()}, Now: now})
	w := watch(t, server, "w1")
	w.told("active", "id-alice off", 200)
	ahead.Store(int64(11 * time.Minute))
	w.told("terminated;reason=timeout", "id-alice off", 200)
}

func TestAStateIsToldWithoutSubscription(t *testing.T) {
	t.Parallel()
	server := listen(t, sip.Config{})
	p := newPeer(t, "udp", server)
	b := sip.Binding{Contact: "sip:alice@192.0.2.1:5060", Source: p.conn.LocalAddr().(*net.UDPAddr).AddrPort(), Transport: sip.UDP}
	done := make(chan int, 1)
	go func() {
		status, _ := server.NotifyOf(context.Background(), b, "sip:alice@x", "message-summary", "application/simple-message-summary", []byte("off"))
		done <- status
	}()
	m := p.expect("NOTIFY sip:alice@192.0.2.1:5060")
	if headerOf(m, "Subscription-State") != "terminated" || !strings.HasSuffix(m, "off") {
		t.Errorf("got:\n%s", m)
	}
	p.answer(m, 489, "x", "")
	if status := <-done; status != 489 {
		t.Errorf("status %d", status)
	}
}

// A subject need not be the account's own: phones of two users subscribe to that of a third.
func TestSubjectsAreWatchedByManyAccounts(t *testing.T) {
	t.Parallel()
	l := newLamp()
	topic := l.topic()
	known := atomic.Bool{}
	known.Store(true)
	topic.Subject = func(_ context.Context, account string, _ sip.URI) (string, bool, error) {
		return "bob", known.Load(), nil
	}
	topic.Number = func(body []byte, n uint32) []byte { return fmt.Appendf(nil, "%s %d", body, n) }
	server := listen(t, sip.Config{Accounts: newBook().add("alice", "secret"), Topics: []sip.Topic{topic}})
	one, two := watch(t, server, "w1"), watch(t, server, "w2")
	one.told("active", "bob off 0", 200)
	two.told("active", "bob off 0", 200)
	l.state.Store("on")
	if at := server.Changed("message-summary", "bob"); len(at) != 2 {
		t.Errorf("told %v", at)
	}
	if at := server.Changed("message-summary", "id-alice"); len(at) != 0 {
		t.Errorf("the account is no subject: %v", at)
	}
	one.told("active", "bob on 1", 200)
	two.told("active", "bob on 1", 200)
	known.Store(false)
	p := newPeer(t, "udp", server)
	login := asked(p, "w3")
	p.ask("SUBSCRIBE", "alice", "w3", 2, summary+login())
	p.expect("SIP/2.0 404")
}
