package softphone

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"soniq/internal/protocol/media"
	"soniq/internal/protocol/sip"
)

// DigitsHeader is the SIP header with the digits that a callee is to send.
const DigitsHeader = "X-Test-Digits"

// maxCallees limits the callees of a server that are in a call at once.
const maxParties = 100

// Callees simulates called parties outside. Each number has its own behaviour. They take calls of one server on the
// loopback.
type Parties struct {
	server *sip.Server
	audio  *media.Engine
	log    *slog.Logger
	speech []int16
	roles  map[string]Role

	ctx     context.Context // ends when Close is called
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu   sync.Mutex // guards busy
	busy int
}

// A Behavior runs a callee during one call. It returns when the call has ended or is to be ended.
type Role func(ctx context.Context, p *Party)

// OpenCallees waits for calls on a free port. The keys of behaviors are the user parts of request URIs. Calls to
// other users are answered with 404.
func OpenParties(ctx context.Context, roles map[string]Role, log *slog.Logger) (*Parties, error) {
	p := &Parties{log: log, roles: roles}
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
func (p *Parties) Addr() string { return p.server.Addr().String() }

// Close ends all calls and waits until they have ended.
func (p *Parties) Close() {
	p.cancel()
	p.running.Wait()
	_ = p.server.Close()
	p.audio.Close()
}

// Invite starts the behaviour of the called number. It answers 404 for an unknown number, and 503 if too many callees
// are in a call.
func (p *Parties) Invite(_ context.Context, in *sip.Inbound) {
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

func (p *Parties) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy >= maxParties || p.ctx.Err() != nil {
		return false
	}
	p.busy++
	return true
}

func (p *Parties) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy--
}

// Busy returns the number of callees in a call.
func (p *Parties) Busy() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy
}

// maxCallTime limits the duration of a call with any callee.
const longest = 3 * time.Minute

func (p *Parties) play(in *sip.Inbound, role Role) {
	ctx, cancel := context.WithTimeout(p.ctx, longest)
	defer cancel()
	x := &Party{parties: p, in: in, leg: in.Leg(), Digits: in.Header(DigitsHeader), over: make(chan struct{}), acked: make(chan struct{})}
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

// A Callee is the called party of one call.
type Party struct {
	Digits string // digits that the caller requests it to send

	parties *Parties
	in      *sip.Inbound
	leg     *sip.Leg
	stream  *media.Stream
	session *media.Session

	mu       sync.Mutex // guards the fields below
	answered bool
	ended    bool
	over     chan struct{}
	once     sync.Once
	acked    chan struct{}
	ack      sync.Once
}

func (x *Party) event(e sip.Event) {
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

func (x *Party) reinvited(e sip.Reinvite) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.session == nil || x.stream == nil {
		e.Respond(488, nil)
		return
	}
	offer, err := x.session.ReceiveOffer(e.SDP)
	if err == nil {
		var m media.Media
		if m, err = media.LocalAnswer(offer); err == nil {
			_, err = x.session.Answer(m)
		}
	}
	if err != nil {
		e.Respond(488, nil)
		return
	}
	x.stream.Apply(x.session, netip.Addr{})
	e.Respond(200, x.session.Local())
}

// close ends the call if it has not ended. It calls SIP without holding x.mu, because event takes it.
func (x *Party) close() {
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

// Wait waits for d. It returns false if the call ended meanwhile.
func (x *Party) Wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Ring sends 180 Ringing.
func (x *Party) Ring() { x.in.Ring(180, nil) }

// Reject refuses the call with a SIP status.
func (x *Party) Reject(status int) {
	x.mu.Lock()
	x.ended = true
	x.mu.Unlock()
	x.in.Reject(status, "", 0)
}

// Answer answers the call and reports whether that succeeded.
func (x *Party) Answer(ctx context.Context) bool {
	stream, err := x.parties.audio.Open()
	if err != nil {
		x.parties.log.Warn("test party has no audio", "err", err)
		return false
	}
	stream.SetComfort(true)
	x.mu.Lock()
	x.stream, x.session = stream, media.NewSession(stream.Local())
	x.mu.Unlock()
	return x.pickUp(ctx, media.LocalAnswer, func() { stream.Apply(x.session, x.in.Source.Addr()) })
}

// answerWith answers the call with the media that answer returns for the offer. It reports whether the ACK arrived.
func (x *Party) pickUp(ctx context.Context, answer func(media.Description) (media.Media, error), apply func()) bool {
	offer, err := x.session.ReceiveOffer(x.in.Offer)
	if err == nil {
		var m media.Media
		if m, err = answer(offer); err == nil {
			_, err = x.session.Answer(m)
		}
	}
	if err != nil {
		x.Reject(488)
		return false
	}
	apply()
	if x.in.Answer(x.session.Local()) != nil {
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

// Say sends speech for d.
func (x *Party) Say(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for ctx.Err() == nil {
		if err := x.stream.Send(ctx, x.parties.speech); err != nil && ctx.Err() == nil {
			return
		}
	}
}

// Play sends 8 kHz audio.
func (x *Party) Play(ctx context.Context, pcm []int16) { _ = x.stream.Send(ctx, pcm) }

// Press sends digits, as events if the other side takes them, else as tones.
func (x *Party) Press(ctx context.Context, digits string) {
	_ = x.stream.SendDTMF(ctx, digits, media.DTMFOptions{Inband: !x.stream.TakesEvents()})
}

// Hold puts the call on hold, or resumes it.
func (x *Party) Hold(ctx context.Context, on bool) error {
	x.mu.Lock()
	m := x.session.Ours()
	m.Direction = media.SendRecv
	if on {
		m.Direction = media.SendOnly
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
