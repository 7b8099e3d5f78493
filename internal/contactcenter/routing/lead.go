package routing

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/db"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/pbx"
)

// room is what leads callers to destinations of a kind; nil for those that are dialled.
func (s *Service) room(to string) Room {
	kind, _, _ := strings.Cut(to, ":")
	switch kind {
	case "flow":
		return s.flow
	case "queue":
		return s.Queue
	case "voicemail":
		return s.Mailbox
	case "user":
		if s.Person == nil {
			return s.phones
		}
		return s.Person
	case "mailbox":
		return s.access
	}
	return nil
}

// phones rings the telephones of a user, whatever they want beside that.
func (s *Service) phones(ctx context.Context, v *pbx.Visit, _ string, l pbx.Lead) (outcome string) {
	if l.Unanswered != "" {
		return l.Unanswered
	}
	return s.dial(ctx, v, l.To)
}

// attend leads a caller to where they are to go, and, where nobody was found there, to the fallback of the number they dialled. Nobody is
// left in silence: who can be led nowhere is told so.
func (s *Service) attend(ctx context.Context, v *pbx.Visit, l pbx.Lead) {
	outcome := s.safely(ctx, v, l)
	if over(outcome, l.To) {
		return
	}
	if n := s.dialled(ctx, v); n.Fallback != nil && *n.Fallback != l.To {
		v.Step("fallback", map[string]any{"to": *n.Fallback, "after": outcome})
		if outcome = s.safely(ctx, v, pbx.Lead{Org: l.Org, To: *n.Fallback}); over(outcome, *n.Fallback) {
			return
		}
	}
	s.dismiss(ctx, v, outcome)
}

// done reports whether nothing is left to do for a caller.
func done(outcome string) bool {
	return slices.Contains([]string{Gone, Answered, Left, Callback, Ended}, outcome)
}

// over is done for who was led somewhere first: whoever says nothing to a mailbox has reached it.
func over(outcome, to string) bool {
	return done(outcome) || outcome == Empty && !strings.HasPrefix(to, "queue:")
}

// dialled is the number a caller from outside dialled; zero where there is none.
func (s *Service) dialled(ctx context.Context, v *pbx.Visit) (n number.Number) {
	i := v.Info()
	if i.Direction != "inbound" || i.NumberID == "" {
		return n
	}
	n, err := s.Numbers.Get(ctx, s.DB.Read(ctx), i.Org, i.NumberID)
	if err != nil && !db.IsNone(err) {
		s.Log.Error("number of call not read", "call", i.CallID, "err", err)
	}
	return n
}

// safely leads a caller, and is Failed where a room broke.
func (s *Service) safely(ctx context.Context, v *pbx.Visit, l pbx.Lead) (outcome string) {
	defer func() {
		if x := recover(); x != nil {
			s.Log.Error("caller not led", "call", v.Info().CallID, "to", l.To, "panic", x, "stack", string(debug.Stack()))
			v.Step("led_in_vain", map[string]any{"to": l.To, "reason": "internal error"})
			outcome = Failed
		}
	}()
	return s.follow(ctx, v, l)
}

// dismiss ends the call of a caller for whom nobody was found. Those who were made to wait, or expect more, are told so.
func (s *Service) dismiss(ctx context.Context, v *pbx.Visit, outcome string) {
	reason := "no_route"
	switch outcome {
	case Busy, Rejected:
		_ = v.HangUp(ctx, outcome)
		return
	case NoAnswer, Unreachable:
		_ = v.HangUp(ctx, "no_answer")
		return
	case Timeout:
		reason = "timeout"
	case Overflow, Empty:
		reason = "no_answer"
	}
	if s.apologise(ctx, v) == nil {
		_ = v.HangUp(ctx, reason)
	}
}

// lead leads a caller to any destination: queue:, flow:, voicemail:, user:, ext:, a number or sip:. It is Failed where there is nothing, or
// where the caller was led on too often already, so that queues and flows that lead to each other end.
func (s *Service) lead(ctx context.Context, v *pbx.Visit, to string) (outcome string) {
	return s.leadWith(ctx, v, to, Wish{})
}

// leadWith is lead for who asks something of the room.
func (s *Service) leadWith(ctx context.Context, v *pbx.Visit, to string, w Wish) (outcome string) {
	return s.follow(withWish(ctx, w), v, pbx.Lead{Org: v.Info().Org, To: to})
}

func (s *Service) follow(ctx context.Context, v *pbx.Visit, l pbx.Lead) (outcome string) {
	if !ledOn(ctx) {
		v.Step("led_in_vain", map[string]any{"to": l.To, "reason": "the caller was led on too often"})
		return Failed
	}
	to, err := s.resolve(ctx, l)
	if err != nil {
		s.Log.Error("destination not found", "call", v.Info().CallID, "to", l.To, "err", err)
		v.Step("led_in_vain", map[string]any{"to": l.To, "reason": "internal error"})
		return Failed
	}
	l.To = to
	if r := s.room(l.To); r != nil {
		_, id, _ := strings.Cut(l.To, ":")
		return r(ctx, v, id, l)
	}
	return s.dial(ctx, v, l.To)
}

// resolve turns the extension of a user or a queue into who has it.
func (s *Service) resolve(ctx context.Context, l pbx.Lead) (to string, err error) {
	extension, ok := strings.CutPrefix(l.To, "ext:")
	if !ok {
		return l.To, nil
	}
	owner, err := org.ExtensionOwner(ctx, s.DB.Read(ctx), l.Org, extension)
	switch {
	case db.IsNone(err):
		return l.To, nil
	case err != nil:
		return "", fmt.Errorf("find extension: %w", err)
	case strings.HasPrefix(owner, "que_"):
		return "queue:" + owner, nil
	}
	return "user:" + owner, nil
}

// dial rings what is dialled, such as a number outside.
func (s *Service) dial(ctx context.Context, v *pbx.Visit, to string) (outcome string) {
	a, err := v.Ring(ctx, to, pbx.Ringing{Timeout: wish(ctx).Ring})
	if err != nil {
		return orGone(err)
	}
	return outcomeOf(result(ctx, a))
}

// orGone is Gone or Failed.
func orGone(err error) (outcome string) {
	if errors.Is(err, pbx.ErrGone) {
		return Gone
	}
	return Failed
}

// result waits for what comes of ringing somebody.
func result(ctx context.Context, a *pbx.Attempt) pbx.Result {
	select {
	case r := <-a.Done():
		return r
	case <-ctx.Done():
		return pbx.Result{What: "gone"}
	}
}

// outcomeOf is what came of ringing somebody, as an outcome.
func outcomeOf(r pbx.Result) (outcome string) {
	switch r.What {
	case "gone":
		return Gone
	case "lost", "canceled":
		return NoAnswer
	}
	return r.What
}

// longestApology bounds how long it takes to have the apology spoken.
const longestApology = 5 * time.Second

// apologise tells a caller that they cannot be connected: in words where an engine can speak, else by the tones for that.
func (s *Service) apologise(ctx context.Context, v *pbx.Visit) error {
	c, cancel := context.WithTimeout(ctx, longestApology)
	defer cancel()
	clip, err := v.Say(c, "We are sorry. Your call cannot be connected at the moment. Please try again later.", "", "")
	if err != nil {
		clip = sorry()
	}
	v.Step("apology", nil)
	return v.Play(ctx, clip, pbx.Playing{})
}
