package sip_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
)

// afterInviteHandler keeps the goroutine of each call after Invite, until it is released.
type carrier struct {
	carried chan *sip.Inbound
	letGo   chan struct{}
}

func (c *carrier) Invite(_ context.Context, in *sip.Inbound) {
	in.Listen(func(sip.Event) {})
	in.Carry(func() {
		c.carried <- in
		<-c.letGo
		c.carried <- in
	})
}

func TestNobodyWaitsForWhoCarriesACall(t *testing.T) {
	t.Parallel()
	const calls = 3
	c := &carrier{carried: make(chan *sip.Inbound), letGo: make(chan struct{})}
	limits := sip.Limits{Lookups: 1} // code after Invite counts as no lookup
	s, err := sip.Listen(context.Background(), sip.Config{Addr: "127.0.0.1:0", Accounts: sip.AnySource{}, Limits: limits}, c)
	if err != nil {
		t.Fatal(err)
	}
	letGo := sync.OnceFunc(func() { close(c.letGo) })
	t.Cleanup(func() { letGo(); s.Close() })
	next := func(what string) {
		select {
		case <-c.carried:
		case <-time.After(patience):
			t.Fatal(what)
		}
	}
	caller := listen(t, sip.Config{})
	for range calls {
		if _, err := caller.Server.Invite(context.Background(), sip.Outgoing{URI: "sip:x@" + s.Addr().String(), SDP: offerSDP}, func(sip.Event) {}); err != nil {
			t.Fatal(err)
		}
		next("a call is not carried while another is")
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Error("closing waits for calls that are carried")
	}
	letGo()
	for range calls {
		next("who carries a call did not go on")
	}
}
