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
func (s *Service) handlerFor(to string) RouteHandler {
	kind, _, _ := strings.Cut(to, ":")
	return s.handlers[kind]
}

// IsDialled reports whether a destination is dialled, such as a number, because no handler routes its kind.
func (s *Service) IsDialled(to string) bool { return s.handlerFor(to) == nil }

// routeWithFallback routes a caller to the destination of a handoff. If the caller is not handled there, it routes to
// the fallback of the dialled number. If that fails too, the caller hears an apology or the call ends with a reason.
func (s *Service) routeWithFallback(ctx context.Context, v *pbx.ScriptedCall, l pbx.Handoff) {
	outcome := s.routeRecovering(ctx, v, l)
	if isFinalFor(outcome, l.To) {
		return
	}
	if n := s.dialledNumber(ctx, v); n.Fallback != nil && *n.Fallback != l.To {
		v.AddEntry("call.fallback", map[string]any{"to": *n.Fallback, "after": outcome})
		if outcome = s.routeRecovering(ctx, v, pbx.Handoff{Org: l.Org, To: *n.Fallback}); isFinalFor(outcome, *n.Fallback) {
			return
		}
	}
	s.endUnrouted(ctx, v, outcome)
}

// IsFinal reports whether nothing is left to do for a caller.
func IsFinal(outcome string) bool {
	return slices.Contains([]string{CallerGone, Answered, LeftMessage, Callback, Ended}, outcome)
}

// isFinalFor is IsFinal for the first destination and for the fallback: a caller who says nothing to a mailbox was
// handled there too.
func isFinalFor(outcome, to string) bool {
	return IsFinal(outcome) || outcome == NoResult && !strings.HasPrefix(to, "queue:")
}

// dialledNumber returns the number that an inbound caller dialled. It returns the zero value if there is none.
func (s *Service) dialledNumber(ctx context.Context, v *pbx.ScriptedCall) (n number.Number) {
	i := v.Info()
	if i.Direction != "inbound" || i.NumberID == "" {
		return n
	}
	n, err := s.cfg.Numbers.Get(ctx, s.cfg.DB.Read(ctx), i.Org, i.NumberID)
	if err != nil && !db.IsNone(err) {
		s.cfg.Log.Error("number of call not read", "call", i.CallID, "err", err)
	}
	return n
}

// routeRecovering routes a caller. It returns Failed if a route handler panicked.
func (s *Service) routeRecovering(ctx context.Context, v *pbx.ScriptedCall, l pbx.Handoff) (outcome string) {
	defer func() {
		if x := recover(); x != nil {
			s.cfg.Log.Error("caller not routed", "call", v.Info().CallID, "to", l.To, "panic", x, "stack", string(debug.Stack()))
			v.AddEntry("call.routing_failed", map[string]any{"to": l.To, "reason": "internal error"})
			outcome = Failed
		}
	}()
	return s.routeHandoff(ctx, v, l)
}

// endUnrouted ends the call of a caller that was not handled anywhere. A caller who waited in a queue, or whose
// destination failed, hears an apology first. After busy, rejected, no answer and unreachable the call ends at once.
func (s *Service) endUnrouted(ctx context.Context, v *pbx.ScriptedCall, outcome string) {
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
	case Overflow, NoResult:
		reason = "no_answer"
	}
	if s.playApology(ctx, v) == nil {
		_ = v.HangUp(ctx, reason)
	}
}

// RouteTo routes a caller to any destination: queue:, flow:, voicemail:, user:, ext:, a number or sip:. It returns
// Failed if the destination does not exist. It also returns Failed if the caller was routed too often, so that queues
// and flows that route to each other end.
func (s *Service) RouteTo(ctx context.Context, v *pbx.ScriptedCall, to string) (outcome string) {
	return s.RouteWithOptions(ctx, v, to, RouteOptions{})
}

// RouteWithOptions is RouteTo with options for the route handler.
func (s *Service) RouteWithOptions(ctx context.Context, v *pbx.ScriptedCall, to string, w RouteOptions) (outcome string) {
	return s.routeHandoff(withRouteOptions(ctx, w), v, pbx.Handoff{Org: v.Info().Org, To: to})
}

func (s *Service) routeHandoff(ctx context.Context, v *pbx.ScriptedCall, l pbx.Handoff) (outcome string) {
	if !countRoute(ctx) {
		v.AddEntry("call.routing_failed", map[string]any{"to": l.To, "reason": "the caller was led on too often"})
		return Failed
	}
	to, err := s.resolveExtension(ctx, l)
	if err != nil {
		s.cfg.Log.Error("destination not found", "call", v.Info().CallID, "to", l.To, "err", err)
		v.AddEntry("call.routing_failed", map[string]any{"to": l.To, "reason": "internal error"})
		return Failed
	}
	l.To = to
	if r := s.handlerFor(l.To); r != nil {
		_, id, _ := strings.Cut(l.To, ":")
		return r(ctx, v, id, l)
	}
	return s.ringDestination(ctx, v, l.To)
}

// resolveExtension replaces the extension of a user or a queue with the id of its owner. It returns any other
// destination, and an unknown extension, unchanged.
func (s *Service) resolveExtension(ctx context.Context, l pbx.Handoff) (to string, err error) {
	extension, ok := strings.CutPrefix(l.To, "ext:")
	if !ok {
		return l.To, nil
	}
	owner, err := org.ExtensionOwner(ctx, s.cfg.DB.Read(ctx), l.Org, extension)
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
func (s *Service) ringDestination(ctx context.Context, v *pbx.ScriptedCall, to string) (outcome string) {
	a, err := v.Ring(ctx, to, pbx.RingOptions{Timeout: RouteOptionsOf(ctx).RingTimeout})
	if err != nil {
		return OutcomeOfError(err)
	}
	return AttemptOutcome(AwaitAttempt(ctx, a))
}

// OutcomeOfError returns CallerGone for pbx.ErrGone, and Failed for any other error.
func OutcomeOfError(err error) (outcome string) {
	if errors.Is(err, pbx.ErrGone) {
		return CallerGone
	}
	return Failed
}

// AwaitAttempt waits for the result of a ring attempt. It returns the result "gone" if ctx ends first.
func AwaitAttempt(ctx context.Context, a *pbx.Attempt) pbx.Result {
	select {
	case r := <-a.Done():
		return r
	case <-ctx.Done():
		return pbx.Result{Status: "gone"}
	}
}

// AttemptOutcome returns the outcome for the result of a ring attempt.
func AttemptOutcome(r pbx.Result) (outcome string) {
	switch r.Status {
	case "gone":
		return CallerGone
	case "lost", "canceled":
		return NoAnswer
	}
	return r.Status
}

// apologyTimeout limits the speech synthesis of the apology.
const apologyTimeout = 5 * time.Second

// playApology plays to the caller that the call cannot be connected: speech, or the special information tone if there
// is no text to speech.
func (s *Service) playApology(ctx context.Context, v *pbx.ScriptedCall) error {
	c, cancel := context.WithTimeout(ctx, apologyTimeout)
	defer cancel()
	clip, err := v.Say(c, "We are sorry. Your call cannot be connected at the moment. Please try again later.", "", "")
	if err != nil {
		clip = specialInformationTone()
	}
	v.AddEntry("apology.played", nil)
	return v.Play(ctx, clip, pbx.PlayOptions{})
}
