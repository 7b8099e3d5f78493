// Package softphone is a SIP phone that plays prepared speech. It registers, calls and answers over real SIP and RTP.
// The demo and the sandbox use it in place of people.
package softphone

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"soniq/internal/protocol/media"
	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/digest"
	"soniq/internal/protocol/sip/resolve"
	"soniq/internal/protocol/sip/sipmsg"
)

// Account has the credentials of a phone.
type Account struct {
	Registrar string // host:port
	Username  string
	Domain    string
	Password  string
}

// Phone is a softphone with one call at a time.
type Phone struct {
	account Account
	server  *sip.Server
	audio   *media.Engine
	log     *slog.Logger

	mu       sync.Mutex // guards line
	call     *ActiveCall
	Incoming chan *ActiveCall // inbound calls that were answered
}

// ActiveCall is the phone's side of a call.
type ActiveCall struct {
	leg       *sip.Leg
	stream    *media.Stream
	session   *sdp.Session
	connected chan struct{} // closed when the call is established
	over      chan struct{} // closed when the call has ended
	once      sync.Once
	failure   error
}

// ErrBusy is returned by Call if the phone has a call already.
var ErrBusy = errors.New("robot is on the phone")

// Open opens a phone on a free loopback port and registers it.
func Open(ctx context.Context, a Account, log *slog.Logger) (*Phone, error) {
	p := &Phone{account: a, log: log, Incoming: make(chan *ActiveCall, 1)}
	loopback := netip.MustParseAddr("127.0.0.1")
	var err error
	if p.audio, err = media.New(media.Config{Bind: loopback, Advertise: loopback, Loops: 1, Logger: log}); err != nil {
		return nil, fmt.Errorf("robot audio: %w", err)
	}
	if p.server, err = sip.Listen(ctx, sip.Config{Addr: "127.0.0.1:0", Accounts: sip.AnySource{}, Logger: log}, p); err != nil {
		p.audio.Close()
		return nil, fmt.Errorf("robot signalling: %w", err)
	}
	_, err = p.server.Register(ctx, sip.RegistrationConfig{Registrar: resolve.Target{Host: a.Registrar},
		AOR:         "sip:" + a.Username + "@" + a.Domain,
		Credentials: digest.Credentials{Username: a.Username, Password: a.Password}, Expires: 5 * time.Minute})
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("register robot %s: %w", a.Username, err)
	}
	return p, nil
}

// Close ends the call and closes the phone.
func (p *Phone) Close() {
	_ = p.server.Close()
	p.audio.Close()
}

// Invite answers an inbound call after ringTime.
func (p *Phone) Invite(_ context.Context, in *sip.Inbound) {
	l, err := p.prepareAnswer(in)
	if err != nil {
		in.Listen(func(sip.Event) {})
		in.Reject(486, "", 0)
		return
	}
	in.Ring(180, nil)
	time.AfterFunc(ringTime, func() { p.answer(in, l) })
}

// ringTime is the time between 180 and 200 of an inbound call.
const ringTime = 800 * time.Millisecond

func (p *Phone) prepareAnswer(in *sip.Inbound) (*ActiveCall, error) {
	l, err := p.newCall()
	if err != nil {
		return nil, err
	}
	l.leg = in.Leg()
	in.Listen(func(e sip.Event) { p.event(l, e) })
	offer, err := l.session.ReceiveOffer(in.Offer)
	if err != nil {
		p.end(l, err)
		return nil, err
	}
	m, err := sdp.LocalAnswer(offer)
	if err == nil {
		_, err = l.session.Answer(m)
	}
	if err != nil {
		p.end(l, err)
		return nil, err
	}
	l.stream.Apply(l.session, in.Source.Addr())
	return l, nil
}

func (p *Phone) answer(in *sip.Inbound, l *ActiveCall) {
	if err := in.Answer(l.session.LocalBody()); err != nil {
		p.end(l, err)
		return
	}
	select {
	case p.Incoming <- l:
	default:
	}
}

// newCall reserves the phone for a call, and opens its media stream.
func (p *Phone) newCall() (*ActiveCall, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.call != nil {
		return nil, ErrBusy
	}
	stream, err := p.audio.Open()
	if err != nil {
		return nil, fmt.Errorf("robot line: %w", err)
	}
	stream.SetComfort(true)
	p.call = &ActiveCall{stream: stream, session: sdp.NewSession(stream.Local()), connected: make(chan struct{}), over: make(chan struct{})}
	return p.call, nil
}

// event handles an event of the call's leg. It must not block.
func (p *Phone) event(l *ActiveCall, e sip.Event) {
	switch e := e.(type) {
	case sip.Answered:
		if _, err := l.session.ReceiveAnswer(e.SDP); err != nil {
			p.hangUp(l)
			p.end(l, err)
			return
		}
		l.stream.Apply(l.session, netip.Addr{})
		l.once.Do(func() { close(l.connected) })
	case sip.Acked:
		l.once.Do(func() { close(l.connected) })
	case sip.Failed:
		p.end(l, fmt.Errorf("the call failed with %d %s", e.Status, e.Reason))
	case sip.Reinvite:
		answerOffer(e, l.session, l.stream)
	case sip.Info:
		e.Respond(200)
	case sip.Refer:
		e.Respond(603)
	case sip.Canceled, sip.Bye, sip.Closed:
		p.end(l, nil)
	case sip.Lost:
		p.end(l, errors.New("the call was lost: "+e.Why))
	}
}

// answerOffer answers a re-INVITE, and changes the stream as the session then says.
func answerOffer(e sip.Reinvite, session *sdp.Session, stream *media.Stream) {
	offer, err := session.ReceiveOffer(e.SDP)
	if err == nil {
		var m sdp.LocalMedia
		if m, err = sdp.LocalAnswer(offer); err == nil {
			_, err = session.Answer(m)
		}
	}
	if err != nil {
		e.Respond(488, nil)
		return
	}
	stream.Apply(session, netip.Addr{})
	e.Respond(200, session.LocalBody())
}

// hangUp ends a call whose leg may not exist yet.
func (p *Phone) hangUp(l *ActiveCall) {
	p.mu.Lock()
	leg := l.leg
	p.mu.Unlock()
	if leg != nil {
		leg.Bye(sip.Reason{}) // calls end, which locks p.mu
	}
}

// end releases the phone after a call.
func (p *Phone) end(l *ActiveCall, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.call != l {
		return
	}
	p.call = nil
	l.failure = err
	close(l.over)
	go l.stream.Close()
}

// Call places a call, and returns when it is answered.
func (p *Phone) Call(ctx context.Context, number string) (*ActiveCall, error) {
	return p.CallRinging(ctx, number, func() {})
}

// CallRinging is Call. It calls ringing at the first provisional response after 100. ringing must not block.
func (p *Phone) CallRinging(ctx context.Context, number string, ringing func()) (*ActiveCall, error) {
	l, err := p.newCall()
	if err != nil {
		return nil, err
	}
	o := sip.Outgoing{URI: "sip:" + number + "@" + p.account.Registrar, NextHop: resolve.Target{Host: p.account.Registrar},
		From:        sipmsg.Address{URI: sipmsg.URI{User: p.account.Username, Host: p.account.Domain}},
		To:          sipmsg.Address{URI: sipmsg.URI{User: number, Host: p.account.Domain}},
		Credentials: digest.Credentials{Username: p.account.Username, Password: p.account.Password},
		SDP:         l.session.Offer(sdp.LocalOffer())}
	leg, err := p.server.Invite(ctx, o, func(e sip.Event) {
		if r, ok := e.(sip.Provisional); ok && r.Status > 100 {
			ringing()
		}
		p.event(l, e)
	})
	p.mu.Lock()
	l.leg = leg
	p.mu.Unlock()
	if err != nil {
		p.end(l, err)
		return nil, fmt.Errorf("robot calls %s: %w", number, err)
	}
	select {
	case <-l.connected:
		return l, nil
	case <-l.over:
		return nil, fmt.Errorf("robot calls %s: %w", number, l.failure)
	case <-ctx.Done():
		leg.Bye(sip.Reason{}) // the leg may be answered already
		return nil, ctx.Err()
	}
}

// Say plays audio of 8 kHz, and returns at its end.
func (l *ActiveCall) Say(ctx context.Context, pcm []int16) error { return l.stream.Send(ctx, pcm) }

// HangUp ends the call.
func (l *ActiveCall) HangUp() { l.leg.Bye(sip.Reason{Q850: 16}) }

// Over is closed when the call has ended.
func (l *ActiveCall) Over() <-chan struct{} { return l.over }

// ReceivedPackets returns the number of received RTP packets.
func (l *ActiveCall) ReceivedPackets() uint64 { return l.stream.Stats().Received }
