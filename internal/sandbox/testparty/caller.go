package testparty

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/protocol/media/clip"
	"soniq/internal/protocol/media/dsp"
	"soniq/internal/sandbox/sandbox"
	"soniq/internal/sandbox/softphone"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/pbx"
)

// Simulated callers: they call a number of the sandbox and carry out a script.

const (
	maxCallTime = 5 * time.Minute  // of a call with its script
	maxRingTime = 60 * time.Second // until an answer
)

// simulatedCaller is a simulated caller with its call.
type simulatedCaller struct {
	account string // of its trunk; without an id of a trunk for a number bought in the sandbox
	callID  string
	called  atomic.Bool // the call has its id
}

// maxStartTime limits the wait until a call has started.
const maxStartTime = 10 * time.Second

// Call starts a call of a simulated caller, and returns its id and the number called once the called side has answered in any way. The
// script runs in the background.
func (s *Service) Call(ctx context.Context, c sandbox.SimulatedCall) (id, to string, err error) {
	n, err := s.calledNumber(ctx, c)
	if err != nil {
		return "", "", err
	}
	release, ok := s.limit.acquire(c.Org)
	if !ok {
		return "", "", op.Fail("concurrency_limit", "at most 10 test parties are on the telephone at once")
	}
	phone, err := softphone.OutsideCaller(s.ctx, c.From, s.serverAddr(), s.c.Log)
	if err != nil {
		release()
		return "", "", err
	}
	trunk := ""
	if n.TrunkID != nil {
		trunk = *n.TrunkID
	}
	caller := &simulatedCaller{account: pbx.TrunkAccount(c.Org, trunk), callID: db.NewID("call")}
	s.sources.Store(phone.Addr(), caller)
	started := make(chan struct{})
	s.running.Go(func() {
		defer release()
		defer s.sources.Delete(phone.Addr())
		defer phone.Close()
		ctx, cancel := context.WithTimeout(s.ctx, maxCallTime)
		defer cancel()
		s.talk(ctx, phone, n.Number, c, sync.OnceFunc(func() { close(started) }))
	})
	select {
	case <-started:
	case <-time.After(maxStartTime):
	case <-ctx.Done():
		return "", "", ctx.Err()
	}
	return caller.callID, n.Number, nil
}

// calledNumber returns the number that a simulated caller calls, or an error if calls cannot reach it.
func (s *Service) calledNumber(ctx context.Context, c sandbox.SimulatedCall) (number.Number, error) {
	n, err := s.c.Numbers.FindNumber(ctx, s.c.DB.Read(ctx), c.Org, c.To)
	switch {
	case err != nil && !db.IsNone(err):
		return n, err
	case err != nil:
		return n, op.Invalid(op.Field("to", "number_not_owned", "not a number of your organisation"))
	case n.Provider == number.ProviderSandbox && n.Status != "active":
		return n, op.Invalid(op.Field("to", "number_not_active", "the number is "+n.Status+"; calls reach it once it is active"))
	case n.Provider != number.ProviderSandbox && n.TrunkID == nil:
		return n, op.Invalid(op.Field("to", "number_not_owned", "the number has no trunk; set its trunk_id"))
	}
	return n, nil
}

// serverAddr returns the address of the SIP server as a client on this machine reaches it.
func (s *Service) serverAddr() string {
	host, port, err := net.SplitHostPort(s.c.Server.SIPAddr())
	if a, wrong := netip.ParseAddr(host); err != nil || wrong == nil && a.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// talk places the call and runs its script. It calls started once the called side rings, has answered or has refused.
func (s *Service) talk(ctx context.Context, phone *softphone.Phone, to string, c sandbox.SimulatedCall, started func()) {
	ringing, stop := context.WithTimeout(ctx, maxRingTime)
	line, err := phone.CallRinging(ringing, to, started)
	started()
	stop()
	if err != nil {
		s.c.Log.Info("test call not answered", "org", c.Org, "err", err)
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-line.Over():
			cancel()
		case <-ctx.Done():
		}
	}()
	if len(c.Script) == 0 {
		s.chat(ctx, line)
	}
	for _, step := range c.Script {
		if ctx.Err() != nil || step.Hangup {
			break
		}
		s.step(ctx, line, c.Org, step)
	}
	line.HangUp()
	select {
	case <-line.Over():
	case <-time.After(time.Second): // for the answer to its BYE
	}
}

// chat speaks the caller's part of the built-in conversation.
func (s *Service) chat(ctx context.Context, line *softphone.ActiveCall) {
	all, err := softphone.Conversation()
	for _, x := range all {
		if err == nil && !x.Agent && ctx.Err() == nil {
			err = line.Say(ctx, x.PCM)
		}
	}
}

// step runs one step of a script.
func (s *Service) step(ctx context.Context, line *softphone.ActiveCall, org string, step sandbox.Step) {
	switch {
	case step.Say != "":
		line.Play(ctx, s.clip(ctx, org, step.Say))
	case step.DTMF != "":
		if err := line.Press(ctx, step.DTMF); err != nil && ctx.Err() == nil {
			s.c.Log.Info("test caller could not send DTMF", "org", org, "err", err)
		}
	default:
		select {
		case <-time.After(step.WaitTime()):
		case <-ctx.Done():
		}
	}
}

// clip synthesises a text. Without a voice it returns a tone of 60 ms per byte of the text.
func (s *Service) clip(ctx context.Context, org, text string) *clip.Clip {
	path, err := s.c.Speech.File(ctx, org, text, "", "")
	if err == nil {
		var c *clip.Clip
		if c, err = clip.Load(path); err == nil {
			return c
		}
	}
	if !errors.Is(err, context.Canceled) {
		s.c.Log.Warn("test caller cannot speak: a tone is played", "org", org, "err", err)
	}
	return clip.New(dsp.Tone(440, -15, time.Duration(len(text))*60*time.Millisecond, 8000), 8000)
}
