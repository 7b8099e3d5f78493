package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"soniq/e2e/rig"
	"soniq/sip"
)

// A handset is a telephone without ears: it signals, and its user does with calls what the test says.
type handset struct {
	t      testing.TB
	server *sip.Server
	host   string
	login  rig.Login
	user   rig.User
	rings  chan<- *ringing
}

// A ringing is a call that rings a handset.
type ringing struct {
	at   *handset
	in   *sip.Inbound
	over chan struct{} // closed when it neither rings nor is spoken on
}

// handsetOffer is the offer and the answer of a handset: it listens, and nothing is sent to it.
var handsetOffer = []byte("v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 9 RTP/AVP 0\r\na=recvonly\r\n")

// handset adds a user with a registered telephone whose calls are told to rings.
func (s *site) handset(first string, rings chan<- *ringing) *handset {
	s.T.Helper()
	u := s.AddUser(first)
	h := &handset{t: s.T, host: s.Server.SIP, login: u.SIP, user: u, rings: rings}
	var err error
	c := sip.Config{Addr: "127.0.0.1:0", Accounts: sip.AnySource{}, Logger: slog.New(slog.DiscardHandler)}
	if h.server, err = sip.Listen(s.T.Context(), c, h); err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() { _ = h.server.Close() })
	_, err = h.server.Register(s.T.Context(), sip.Registration{Registrar: sip.Target{Host: h.host}, AOR: "sip:" + u.SIP.Username + "@" + u.SIP.Domain,
		Credentials: h.credentials(), Expires: time.Hour})
	if err != nil {
		s.T.Fatal(err)
	}
	return h
}

func (h *handset) credentials() sip.Credentials {
	return sip.Credentials{Username: h.login.Username, Password: h.login.Password}
}

// Invite lets it ring.
func (h *handset) Invite(_ context.Context, in *sip.Inbound) {
	r := &ringing{at: h, in: in, over: make(chan struct{})}
	over := sync.OnceFunc(func() { close(r.over) })
	in.Listen(func(e sip.Event) {
		switch x := e.(type) {
		case sip.Canceled, sip.Bye, sip.Closed, sip.Lost:
			over()
		case sip.Reinvite:
			x.Respond(200, handsetOffer)
		}
	})
	in.Ring(180, nil)
	h.rings <- r
}

func (r *ringing) name() string { return r.at.user.Name }

func (r *ringing) answer() {
	r.at.t.Helper()
	if err := r.in.Answer(handsetOffer); err != nil {
		r.at.t.Fatalf("%s answers: %v", r.name(), err)
	}
}

func (r *ringing) refuse() { r.in.Reject(486, "", 0) }

// stops waits until it rings no more.
func (r *ringing) stops() {
	r.at.t.Helper()
	select {
	case <-r.over:
	case <-time.After(30 * time.Second):
		r.at.t.Fatalf("%s's telephone goes on ringing", r.name())
	}
}

// nextRinging waits for the next telephone that rings.
func nextRinging(t testing.TB, rings <-chan *ringing) *ringing {
	t.Helper()
	select {
	case r := <-rings:
		return r
	case <-time.After(30 * time.Second):
		t.Fatal("no telephone rings")
		return nil
	}
}

// A dialled call is one that a handset makes.
type dialled struct {
	t        testing.TB
	leg      *sip.Leg
	answered chan struct{}
	over     chan sip.Event // the last event, once
}

// dial calls a number.
func (h *handset) dial(number string) *dialled {
	h.t.Helper()
	d := &dialled{t: h.t, answered: make(chan struct{}), over: make(chan sip.Event, 1)}
	up := sync.OnceFunc(func() { close(d.answered) })
	o := sip.Outgoing{URI: "sip:" + number + "@" + h.host, NextHop: sip.Target{Host: h.host}, SDP: handsetOffer, Credentials: h.credentials(),
		From: sip.Address{URI: sip.URI{User: h.login.Username, Host: h.login.Domain}}, To: sip.Address{URI: sip.URI{User: number, Host: h.login.Domain}}}
	var err error
	d.leg, err = h.server.Invite(h.t.Context(), o, func(e sip.Event) {
		switch x := e.(type) {
		case sip.Answered:
			up()
		case sip.Reinvite:
			x.Respond(200, handsetOffer)
		case sip.Failed, sip.Bye, sip.Lost, sip.Closed:
			d.over <- e
		}
	})
	if err != nil {
		h.t.Fatalf("dial %s: %v", number, err)
	}
	return d
}

// is waits until the call was answered.
func (d *dialled) is() *dialled {
	d.t.Helper()
	select {
	case <-d.answered:
	case e := <-d.over:
		d.t.Fatalf("the call ended: %+v", e)
	case <-time.After(30 * time.Second):
		d.t.Fatal("the call was not answered")
	}
	return d
}

// hangUp ends the call and waits for that.
func (d *dialled) hangUp() {
	d.t.Helper()
	d.leg.Bye(sip.Reason{Q850: 16})
	d.ends()
}

// ends waits until the call is over, and tells how.
func (d *dialled) ends() string {
	d.t.Helper()
	select {
	case e := <-d.over:
		if f, ok := e.(sip.Failed); ok {
			return fmt.Sprint(f.Status)
		}
		return "ended"
	case <-time.After(30 * time.Second):
		d.t.Fatal("the call goes on")
		return ""
	}
}

// press sends keys by INFO.
func (d *dialled) press(keys string) {
	d.t.Helper()
	for _, k := range keys {
		if err := d.leg.Info(d.t.Context(), "application/dtmf-relay", fmt.Appendf(nil, "Signal=%c\r\nDuration=100\r\n", k)); err != nil {
			d.t.Fatalf("press %c: %v", k, err)
		}
	}
}
