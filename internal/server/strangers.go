package server

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/protocol/media"
	"soniq/internal/sandbox/sandbox"
	"soniq/internal/sandbox/softphone"
	"soniq/internal/telephony/pbx"
)

// This file has people outside call numbers of sandboxes.

// strangers are those who call in now: where their calls come from says whose trunk they come over.
type strangers struct {
	node    *Server
	ctx     context.Context // ends with the node
	cancel  context.CancelFunc
	running sync.WaitGroup
	trunks  sync.Map // netip.AddrPort to the name of a trunk
}

func newStrangers(ctx context.Context, n *Server) *strangers {
	s := &strangers{node: n}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return s
}

func (s *strangers) close() {
	s.cancel()
	s.running.Wait()
}

// trunk is the trunk a stranger's call comes over.
func (s *strangers) trunk(source netip.AddrPort) (string, bool) {
	name, ok := s.trunks.Load(netip.AddrPortFrom(source.Addr().Unmap(), source.Port()))
	if !ok {
		return "", false
	}
	return name.(string), true
}

const (
	strangerTime = 5 * time.Minute  // of a call with its script
	strangerRing = 60 * time.Second // until somebody answers
)

// call begins a call and returns the number it goes to. What the caller does then is done in the background.
func (s *strangers) call(ctx context.Context, c sandbox.Caller) (to string, err error) {
	h := s.node.Platform
	n, err := h.findNumber(ctx, h.db.Read(ctx), c.Org, c.To)
	if err != nil || n.TrunkID == nil {
		return "", firstError(notFound(err), op.Invalid(op.Field("to", "number_not_owned", "not a number of your organisation with a trunk")))
	}
	release, ok := s.node.parties.take(c.Org)
	if !ok {
		return "", op.Fail("concurrency_limit", "at most 10 test parties are on the telephone at once")
	}
	phone, err := softphone.Stranger(s.ctx, c.From, s.server(), h.log)
	if err != nil {
		release()
		return "", err
	}
	s.trunks.Store(phone.Addr(), pbx.TrunkAccount(c.Org, *n.TrunkID))
	s.running.Go(func() {
		defer release()
		defer s.trunks.Delete(phone.Addr())
		defer phone.Close()
		ctx, cancel := context.WithTimeout(s.ctx, strangerTime)
		defer cancel()
		s.talk(ctx, phone, n.Number, c)
	})
	return n.Number, nil
}

// notFound leaves out that there is none.
func notFound(err error) error {
	if db.IsNone(err) {
		return nil
	}
	return err
}

// server is where calls come in, as seen from this machine.
func (s *strangers) server() string {
	host, port, err := net.SplitHostPort(s.node.SIPAddr())
	if a, wrong := netip.ParseAddr(host); err != nil || wrong == nil && a.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// talk calls and does what the script says.
func (s *strangers) talk(ctx context.Context, phone *softphone.Phone, to string, c sandbox.Caller) {
	ringing, stop := context.WithTimeout(ctx, strangerRing)
	line, err := phone.Call(ringing, to)
	stop()
	if err != nil {
		s.node.Platform.log.Info("test call not answered", "org", c.Org, "err", err)
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
	case <-time.After(time.Second): // its BYE is on its way
	}
}

// chat says what the caller of the built-in conversation says.
func (s *strangers) chat(ctx context.Context, line *softphone.Line) {
	all, err := softphone.Conversation()
	for _, x := range all {
		if err == nil && !x.Agent && ctx.Err() == nil {
			err = line.Say(ctx, x.PCM)
		}
	}
}

func (s *strangers) step(ctx context.Context, line *softphone.Line, org string, step sandbox.Step) {
	switch {
	case step.Say != "":
		line.Play(ctx, s.clip(ctx, org, step.Say))
	case step.DTMF != "":
		if err := line.Press(ctx, step.DTMF); err != nil && ctx.Err() == nil {
			s.node.Platform.log.Info("test caller pressed nothing", "org", org, "err", err)
		}
	default:
		select {
		case <-time.After(step.Pause()):
		case <-ctx.Done():
		}
	}
}

// clip is a text as speech; where it cannot be spoken a tone as long as the text.
func (s *strangers) clip(ctx context.Context, org, text string) *media.Clip {
	path, err := s.node.Platform.speak(ctx, org, text, "", "")
	if err == nil {
		var c *media.Clip
		if c, err = media.LoadClip(path); err == nil {
			return c
		}
	}
	if !errors.Is(err, context.Canceled) {
		s.node.Platform.log.Warn("test caller cannot speak, a tone is heard", "org", org, "err", err)
	}
	return media.NewClip(media.Tone(440, -15, time.Duration(len(text))*60*time.Millisecond, 8000), 8000)
}
