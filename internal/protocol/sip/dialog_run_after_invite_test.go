package sip_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
)

// afterInviteHandler keeps the goroutine of each call after Invite, until it is released.
type afterInviteHandler struct {
	started chan *sip.Inbound
	release chan struct{}
}

func (c *afterInviteHandler) Invite(_ context.Context, in *sip.Inbound) {
	in.Listen(func(sip.Event) {})
	in.RunAfterInvite(func() {
		c.started <- in
		<-c.release
		c.started <- in
	})
}

func TestRunAfterInvite_BlocksNothing(t *testing.T) {
	t.Parallel()
	const calls = 3
	c := &afterInviteHandler{started: make(chan *sip.Inbound), release: make(chan struct{})}
	limits := sip.Limits{Lookups: 1} // code after Invite counts as no lookup
	s, err := sip.Listen(context.Background(), sip.Config{Addr: "127.0.0.1:0", Accounts: sip.AnySource{}, Limits: limits}, c)
	if err != nil {
		t.Fatal(err)
	}
	letGo := sync.OnceFunc(func() { close(c.release) })
	t.Cleanup(func() { letGo(); s.Close() })
	next := func(what string) {
		select {
		case <-c.started:
		case <-time.After(testTimeout):
			t.Fatal(what)
		}
	}
	caller := newTestServer(t, sip.Config{})
	for range calls {
		if _, err := caller.Server.Invite(context.Background(), sip.Outgoing{URI: "sip:x@" + s.Addr().String(), SDP: testOfferSDP},
			func(sip.Event) {}); err != nil {
			t.Fatal(err)
		}
		next("a call is not carried while another is")
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	select {
	case <-closed:
	case <-time.After(testTimeout):
		t.Error("closing waits for calls that are carried")
	}
	letGo()
	for range calls {
		next("who carries a call did not go on")
	}
}
