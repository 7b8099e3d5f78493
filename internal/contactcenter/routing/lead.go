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

// handlerFor returns the route handler for a destination. It returns nil for a destination that is dialled, such as a
// number.
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

// ringUserPhones rings the phones of a user and ignores the user's rules. It is used if Service.User is nil.
func (s *Service) phones(ctx context.Context, v *pbx.Visit, _ string, l pbx.Lead) (outcome string) {
	if l.Unanswered != "" {
		return l.Unanswered
	}
	return s.dial(ctx, v, l.To)
}

// routeWithFallback routes a caller to the destination of a handoff. If the caller is not handled there, it routes to
// the fallback of the dialled number. If that fails too, the caller hears an apology or the call ends with a reason.
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

// isFinal reports whether nothing is left to do for a caller.
func done(outcome string) bool {
	return slices.Contains([]string{Gone, Answered, Left, Callback, Ended}, outcome)
}

// isFinalFor is isFinal for the first destination and for the fallback: a caller who says nothing to a mailbox was
// handled there too.
func over(outcome, to string) bool {
	return done(outcome) || outcome == Empty && !strings.HasPrefix(to, "queue:")
}

// dialledNumber returns the number that an inbound caller dialled. It returns the zero value if there is none.
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

// routeRecovering routes a caller. It returns Failed if a route handler panicked.
func (s *Service) safely(ctx context.Context, v *pbx.Visit, l pbx.Lead) (outcome string) {
	defer func() {
		if x := recover(); x != nil {
			s.Log.Error("caller not routed", "call", v.Info().CallID, "to", l.To, "panic", x, "stack", string(debug.Stack()))
			v.Step("led_in_vain", map[string]any{"to": l.To, "reason": "internal error"})
			outcome = Failed
		}
	}()
	return s.follow(ctx, v, l)
}

// endUnrouted ends the call of a caller that was not handled anywhere. A caller who waited in a queue, or whose
// destination failed, hears an apology first. After busy, rejected, no answer and unreachable the call ends at once.
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

// routeTo routes a caller to any destination: queue:, flow:, voicemail:, user:, ext:, a number or sip:. It returns
// Failed if the destination does not exist. It also returns Failed if the caller was routed too often, so that queues
// and flows that route to each other end.
func (s *Service) lead(ctx context.Context, v *pbx.Visit, to string) (outcome string) {
	return s.leadWith(ctx, v, to, Wish{})
}

// routeWithOptions is routeTo with options for the route handler.
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

// resolveExtension replaces the extension of a user or a queue with the id of its owner. It returns any other
// destination, and an unknown extension, unchanged.
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

// ringDestination rings a destination without a route handler, such as an external number.
func (s *Service) dial(ctx context.Context, v *pbx.Visit, to string) (outcome string) {
	a, err := v.Ring(ctx, to, pbx.Ringing{Timeout: wish(ctx).Ring})
	if err != nil {
		return orGone(err)
	}
	return outcomeOf(result(ctx, a))
}

// outcomeOfError returns CallerGone for pbx.ErrGone, and Failed for any other error.
func orGone(err error) (outcome string) {
	if errors.Is(err, pbx.ErrGone) {
		return Gone
	}
	return Failed
}

// awaitAttempt waits for the result of a ring attempt. It returns the result "gone" if ctx ends first.
func result(ctx context.Context, a *pbx.Attempt) pbx.Result {
	select {
	case r := <-a.Done():
		return r
	case <-ctx.Done():
		return pbx.Result{What: "gone"}
	}
}

// attemptOutcome returns the outcome for the result of a ring attempt.
func outcomeOf(r pbx.Result) (outcome string) {
	switch r.What {
	case "gone":
		return Gone
	case "lost", "canceled":
		return NoAnswer
	}
	return r.What
}

// apologyTimeout limits the speech synthesis of the apology.
const longestApology = 5 * time.Second

// playApology plays to the caller that the call cannot be connected: speech, or the special information tone if there
// is no text to speech.
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
