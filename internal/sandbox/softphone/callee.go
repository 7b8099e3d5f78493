package softphone

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"soniq/internal/protocol/media"
	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/sip"
)

// DigitsHeader is the SIP header with the digits that a callee sends.
const DigitsHeader = "X-Test-Digits"

// maxCallees limits the simultaneous calls of a server with test callees.
const maxCallees = 100

// Callees are test callees: each number behaves by its role. They accept calls of one server on loopback.
type Callees struct {
	server *sip.Server
	audio  *media.Engine
	log    *slog.Logger
	speech []int16
	roles  map[string]Behavior

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu   sync.Mutex // guards busy
	busy int
}

// Behavior is the behaviour of a callee. It returns when the call has ended or is to be ended.
type Behavior func(ctx context.Context, p *Callee)

// OpenCallees listens for calls on a free port. The keys of roles are the user parts of request URIs. Calls to other
// user parts get 404.
func OpenCallees(ctx context.Context, roles map[string]Behavior, log *slog.Logger) (*Callees, error) {
	p := &Callees{log: log, roles: roles}
	p.ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	sentences, err := Conversation()
	if err != nil {
		return nil, err
	}
	for _, s := range sentences {
		if s.Agent {
			p.speech = append(append(p.speech, s.PCM...), make([]int16, 4000)...)
		}
	}
	loopback := netip.MustParseAddr("127.0.0.1")
	if p.audio, err = media.New(media.Config{Bind: loopback, Advertise: loopback, Loops: 1, Logger: log}); err != nil {
		return nil, fmt.Errorf("audio of test parties: %w", err)
	}
	if p.server, err = sip.Listen(ctx, sip.Config{Addr: "127.0.0.1:0", Accounts: sip.AnySource{}, Logger: log}, p); err != nil {
		p.audio.Close()
		return nil, fmt.Errorf("signalling of test parties: %w", err)
	}
	return p, nil
}

// Addr returns the SIP address of the callees, host:port.
func (p *Callees) Addr() string { return p.server.Addr().String() }

// Close ends all calls, and waits for them.
func (p *Callees) Close() {
	p.cancel()
	p.running.Wait()
	_ = p.server.Close()
	p.audio.Close()
}

// Invite starts the role of the called number.
func (p *Callees) Invite(_ context.Context, in *sip.Inbound) {
	role, known := p.roles[in.RequestURI.User]
	switch {
	case !known:
		refuse(in, 404)
	case !p.enter():
		refuse(in, 503)
	default:
		p.running.Go(func() {
			defer p.leave()
			p.play(in, role)
		})
	}
}

func refuse(in *sip.Inbound, status int) {
	in.Listen(func(sip.Event) {})
	in.Reject(status, "", 0)
}

func (p *Callees) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy >= maxCallees || p.ctx.Err() != nil {
		return false
	}
	p.busy++
	return true
}

func (p *Callees) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy--
}

// Busy returns the number of calls in progress.
func (p *Callees) Busy() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy
}

// maxCallTime limits the duration of a call.
const maxCallTime = 3 * time.Minute

func (p *Callees) play(in *sip.Inbound, role Behavior) {
	ctx, cancel := context.WithTimeout(p.ctx, maxCallTime)
	defer cancel()
	x := &Callee{parties: p, in: in, leg: in.Leg(), Digits: in.Header(DigitsHeader), over: make(chan struct{}), acked: make(chan struct{})}
	in.Listen(x.event)
	go func() {
		select {
		case <-x.over:
			cancel()
		case <-ctx.Done():
		}
	}()
	role(ctx, x)
	x.close()
}

// Callee is the callee of one call.
type Callee struct {
	Digits string // to send; empty: those of the role

	parties *Callees
	in      *sip.Inbound
	leg     *sip.Leg
	stream  *media.Stream
	session *sdp.Session

	mu       sync.Mutex // guards the fields below
	answered bool
	ended    bool
	over     chan struct{}
	once     sync.Once
	acked    chan struct{}
	ack      sync.Once
}

func (x *Callee) event(e sip.Event) {
	switch e := e.(type) {
	case sip.Acked:
		x.ack.Do(func() { close(x.acked) })
	case sip.Reinvite:
		x.reinvited(e)
	case sip.Info:
		e.Respond(200)
	case sip.Refer:
		e.Respond(603)
	case sip.Canceled, sip.Bye, sip.Closed, sip.Lost:
		x.once.Do(func() { close(x.over) })
	}
}

func (x *Callee) reinvited(e sip.Reinvite) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.session == nil || x.stream == nil {
		e.Respond(488, nil)
		return
	}
	answerOffer(e, x.session, x.stream)
}

// close ends the call. It must not wait for events while x.mu is held, because event locks it.
func (x *Callee) close() {
	x.mu.Lock()
	ended, answered, stream := x.ended, x.answered, x.stream
	x.mu.Unlock()
	switch {
	case ended:
	case answered:
		x.leg.Bye(sip.Reason{Q850: 16})
	default:
		x.in.Reject(480, "", 0)
	}
	if stream != nil {
		stream.Close()
	}
}

// Wait waits for a duration. It returns false if the call ended meanwhile.
func (x *Callee) Wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Ring sends 180.
func (x *Callee) Ring() { x.in.Ring(180, nil) }

// Reject sends a final status.
func (x *Callee) Reject(status int) {
	x.mu.Lock()
	x.ended = true
	x.mu.Unlock()
	x.in.Reject(status, "", 0)
}

// Answer sends 200, and reports whether the call was established.
func (x *Callee) Answer(ctx context.Context) bool {
	stream, err := x.parties.audio.Open()
	if err != nil {
		x.parties.log.Warn("test party has no audio", "err", err)
		return false
	}
	stream.SetComfort(true)
	x.mu.Lock()
	x.stream, x.session = stream, sdp.NewSession(stream.Local())
	x.mu.Unlock()
	return x.answerWith(ctx, sdp.LocalAnswer, func() { stream.Apply(x.session, x.in.Source.Addr()) })
}

// answerWith sends 200 with the SDP that answer returns for the offer, and calls apply when the call is established.
func (x *Callee) answerWith(ctx context.Context, answer func(sdp.Description) (sdp.LocalMedia, error), apply func()) bool {
	offer, err := x.session.ReceiveOffer(x.in.Offer)
	if err == nil {
		var m sdp.LocalMedia
		if m, err = answer(offer); err == nil {
			_, err = x.session.Answer(m)
		}
	}
	if err != nil {
		x.Reject(488)
		return false
	}
	apply()
	if x.in.Answer(x.session.LocalBody()) != nil {
		return false
	}
	x.mu.Lock()
	x.answered = true
	x.mu.Unlock()
	select {
	case <-x.acked:
		return true
	case <-ctx.Done():
		return false
	}
}

// Say plays synthetic speech for a duration.
func (x *Callee) Say(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for ctx.Err() == nil {
		if err := x.stream.Send(ctx, x.parties.speech); err != nil && ctx.Err() == nil {
			return
		}
	}
}

// Play plays audio of 8 kHz.
func (x *Callee) Play(ctx context.Context, pcm []int16) { _ = x.stream.Send(ctx, pcm) }

// Press sends digits: as RFC 4733 events if the other side accepts them, else as tones.
func (x *Callee) Press(ctx context.Context, digits string) {
	_ = x.stream.SendDTMF(ctx, digits, media.DTMFOptions{Inband: !x.stream.TakesEvents()})
}

// Hold puts the call on hold, or resumes it.
func (x *Callee) Hold(ctx context.Context, on bool) error {
	x.mu.Lock()
	m := x.session.LocalMedia()
	m.Direction = sdp.SendRecv
	if on {
		m.Direction = sdp.SendOnly
	}
	offer := x.session.Offer(m)
	x.mu.Unlock()
	answer, err := x.leg.Reinvite(ctx, offer)
	x.mu.Lock()
	defer x.mu.Unlock()
	if err != nil {
		x.session.Rollback()
		return err
	}
	if _, err := x.session.ReceiveAnswer(answer); err != nil {
		return err
	}
	x.stream.Apply(x.session, netip.Addr{})
	return nil
}
