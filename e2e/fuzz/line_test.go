package fuzz

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"soniq/e2e/limit"
	"soniq/e2e/rig"
	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/digest"
	"soniq/internal/protocol/sip/resolve"
	"soniq/internal/protocol/sip/sipmsg"
)

// line is the remote end of calls: a telephone, or a carrier's switch. It answers every call.
type line struct {
	f      *stand
	server *sip.Server
	answer func(in *sip.Inbound) []byte // to the offer of a call
}

// open opens a line at an address.
func (f *stand) open(address string, answer func(in *sip.Inbound) []byte) *line {
	f.T.Helper()
	l := &line{f: f, answer: answer}
	var err error
	c := sip.Config{Addr: address, Accounts: sip.AnySource{}, Logger: slog.New(slog.DiscardHandler)}
	if l.server, err = sip.Listen(f.T.Context(), c, l); err != nil {
		f.T.Fatal(err)
	}
	f.T.Cleanup(func() { _ = l.server.Close() })
	return l
}

// phone registers a user's telephone.
func (f *stand) phone(u rig.User, answer func(in *sip.Inbound) []byte) *line {
	f.T.Helper()
	l := f.open("127.0.0.1:0", answer)
	_, err := l.server.Register(f.T.Context(), sip.RegistrationConfig{Registrar: resolve.Target{Host: f.Server.SIP},
		AOR: "sip:" + u.SIP.Username + "@" + u.SIP.Domain, Credentials: digest.Credentials{Username: u.SIP.Username,
			Password: u.SIP.Password}, Expires: time.Hour})
	if err != nil {
		f.T.Fatal(err)
	}
	return l
}

// way is a trunk: the source of its calls, and its numbers.
type way struct {
	ip   string
	port int
	user string // number that rings a user
	flow string // number that is answered by a flow
}

// way adds a trunk.
func (f *stand) way(u rig.User) way {
	f.T.Helper()
	w := way{ip: "127.1.9.9", port: rig.FreePort(f.T), user: "+12025551001", flow: "+12025551002"}
	var made, flow struct{ ID string }
	f.Want(200, "PATCH", "/organization", map[string]any{"emergency": map[string]any{"acknowledged": true}}, nil)
	f.Want(201, "POST", "/trunks", map[string]any{"name": "carrier", "host": w.ip, "port": w.port, "srtp": "preferred", "max_channels": 1000,
		"inbound": map[string]any{"allowed_ips": []string{w.ip}}}, &made)
	f.Want(201, "POST", "/flows", map[string]any{"name": "Mailbox", "publish": true, "entry": "leave", "nodes": []map[string]any{
		{"id": "leave", "type": "voicemail", "config": map[string]any{"mailbox": u.ID}}}}, &flow)
	f.Want(201, "POST", "/numbers", map[string]any{"number": w.user, "trunk_id": made.ID, "user_id": u.ID}, nil)
	f.Want(201, "POST", "/numbers", map[string]any{"number": w.flow, "trunk_id": made.ID, "flow_id": flow.ID}, nil)
	return w
}

func (w way) address() string { return net.JoinHostPort(w.ip, strconv.Itoa(w.port)) }

// Invite answers at once.
func (l *line) Invite(_ context.Context, in *sip.Inbound) {
	in.Listen(func(e sip.Event) {
		if x, ok := e.(sip.Reinvite); ok {
			x.Respond(200, l.answer(in))
		}
	})
	_ = in.Answer(l.answer(in))
}

// call is an outgoing call of a line.
type call struct {
	*line
	leg      *sip.Leg
	answered chan []byte   // the answer to the offer, once
	over     chan struct{} // closed at the end
}

// dial calls a number with an offer.
func (l *line) dial(from, number string, offer []byte) (*call, error) {
	c := &call{line: l, answered: make(chan []byte, 1), over: make(chan struct{})}
	ends := sync.OnceFunc(func() { close(c.over) })
	o := sip.Outgoing{URI: "sip:" + number + "@" + l.f.Server.SIP, NextHop: resolve.Target{Host: l.f.Server.SIP}, SDP: offer,
		From: sipmsg.Address{URI: sipmsg.URI{User: from, Host: "carrier.local"}}, To: sipmsg.Address{URI: sipmsg.URI{User: number, Host: "soniq"}}}
	var err error
	c.leg, err = l.server.Invite(l.f.T.Context(), o, func(e sip.Event) {
		switch x := e.(type) {
		case sip.Answered:
			c.answered <- x.SDP
		case sip.Reinvite:
			x.Respond(200, offer)
		case sip.Failed, sip.Bye, sip.Lost, sip.Closed:
			ends()
		}
	})
	return c, err
}

// decided waits until the call is answered or refused. It returns the SDP answer, or nil if the call was refused.
func (c *call) decided() ([]byte, error) {
	select {
	case sdp := <-c.answered:
		return sdp, nil
	case <-c.over:
		return nil, nil
	case <-time.After(limit.Hang(0)):
		return nil, fmt.Errorf("the call %s was neither answered nor refused", c.leg.CallID())
	}
}

// hangUp ends the call and waits for that.
func (c *call) hangUp() error {
	c.leg.Bye(sip.Reason{Q850: 16})
	select {
	case <-c.over:
		return nil
	case <-time.After(limit.Hang(0)):
		return fmt.Errorf("the call %s does not end", c.leg.CallID())
	}
}
func deadline() time.Time { return time.Now().Add(limit.Hang(0)) }
