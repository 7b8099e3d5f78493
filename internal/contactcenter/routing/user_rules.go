package routing

import (
	"context"
	"strings"
	"time"

	"soniq/internal/identity/user"
	"soniq/internal/platform/db"
	"soniq/internal/telephony/pbx"
)

// Per-user call rules: do-not-disturb, forwarding, ringing phones in order, voicemail.

const (
	maxForwards         = 5                // per call, including the diversions of other switches
	inOrderRingTimeout  = 20 * time.Second // per phone, if the phones of a user ring in order
	externalRingTimeout = 45 * time.Second // an external number takes longer until it rings
	doNotDisturb        = "do_not_disturb"
	forwardAlways       = "always"
)

// userRouting routes one caller to a user by the user's rules.
type userRouting struct {
	s       *Service
	v       *pbx.ScriptedCall
	u       user.User
	options RouteOptions
}

// routeUser routes a caller to a user. If the phones rang already, it applies only the rules for unanswered calls.
func (s *Service) routeUser(ctx context.Context, v *pbx.ScriptedCall, id string, l pbx.Handoff) (outcome string) {
	u, err := s.cfg.Users.Get(ctx, s.cfg.DB.Read(ctx), l.Org, id)
	switch {
	case db.IsNone(err) || err == nil && u.Status == user.Removed:
		v.AddEntry("call.routing_failed", map[string]any{"to": l.To, "reason": "there is no such user"})
		return Failed
	case err != nil:
		s.cfg.Log.Error("user not read", "call", v.Info().CallID, "org", l.Org, "err", err)
		return Failed
	case u.Status == user.Suspended:
		return Unreachable
	}
	h := userRouting{s, v, u, RouteOptionsOf(ctx)}
	if l.Unanswered != "" {
		return h.routeUnanswered(ctx, l.Unanswered)
	}
	return h.route(ctx)
}

// route applies the user's rules: forward always, do-not-disturb, then ringing, then the rules for unanswered calls.
func (h userRouting) route(ctx context.Context) (outcome string) {
	switch {
	case h.u.Forward.Always != nil:
		if outcome = h.forwardTo(ctx, forwardAlways, *h.u.Forward.Always); IsFinal(outcome) {
			return outcome
		}
		return h.toVoicemail(ctx, outcome)
	case h.u.DND.On(h.s.cfg.Clock.Now()):
		return h.routeUnanswered(ctx, doNotDisturb)
	}
	if outcome = h.ring(ctx); IsFinal(outcome) {
		return outcome
	}
	return h.routeUnanswered(ctx, outcome)
}

// ring rings the user's phones, all at once or in order.
func (h userRouting) ring(ctx context.Context) (outcome string) {
	o := pbx.RingOptions{Timeout: h.options.RingTimeout, InOrder: h.u.RingStrategy == "in_order", AwaitReconnect: true}
	switch {
	case o.Timeout != 0:
	case o.InOrder:
		o.Timeout = inOrderRingTimeout
	default:
		o.Timeout = h.u.Forward.RingTime()
	}
	a, err := h.v.Ring(ctx, "user:"+h.u.ID, o)
	if err != nil {
		return OutcomeOfError(err)
	}
	return AttemptOutcome(AwaitAttempt(ctx, a))
}

// routeUnanswered applies the user's rules for a call that was not answered: conditional forwarding, then voicemail.
func (h userRouting) routeUnanswered(ctx context.Context, why string) (outcome string) {
	outcome = why
	if why == doNotDisturb {
		outcome = NoAnswer
	}
	if to := h.forwardTarget(why); to != nil {
		if led := h.forwardTo(ctx, why, *to); IsFinal(led) {
			return led
		}
	}
	return h.toVoicemail(ctx, outcome)
}

// forwardTarget returns the destination for a call that the user did not answer; nil: none. A declined call and
// do-not-disturb count as busy.
func (h userRouting) forwardTarget(why string) *string {
	switch why {
	case Busy, Rejected, doNotDisturb:
		return h.u.Forward.Busy
	case Unreachable, Failed:
		return h.u.Forward.Unreachable
	}
	return h.u.Forward.NoAnswer
}

// toVoicemail lets the caller leave a message if the user has voicemail. It returns the outcome otherwise if there is
// no voicemail or the route options want an unanswered caller returned.
func (h userRouting) toVoicemail(ctx context.Context, otherwise string) (outcome string) {
	if !h.u.Voicemail.Enabled || h.options.ReturnUnanswered || h.s.IsDialled("voicemail:") {
		return otherwise
	}
	return h.s.RouteTo(ctx, h.v, "voicemail:"+h.u.ID)
}

// forwardTo routes the caller to another destination on the user's behalf. Loops end because each user forwards a
// call at most once and all forwards of a call are counted, diversions of other switches included.
func (h userRouting) forwardTo(ctx context.Context, why, to string) (outcome string) {
	t := FlowContextOf(ctx)
	note := map[string]any{"user_id": h.u.ID, "to": to, "reason": why}
	switch {
	case t.forwarders[h.u.ID]:
		note["problem"] = "the user forwarded the call already"
	case len(t.forwarders)+h.v.Info().Diversions >= maxForwards:
		note["problem"] = "the call was forwarded too often"
	}
	if note["problem"] != nil {
		h.v.AddEntry("call.forward_failed", note)
		return Unreachable
	}
	t.addForwarder(h.u.ID)
	h.v.AddEntry("call.forwarded", note)
	if IsExtension(to) {
		to = "ext:" + to
	}
	ours, err := h.s.resolveExtension(ctx, pbx.Handoff{Org: h.u.OrgID, To: to})
	if err != nil {
		h.s.cfg.Log.Error("destination not found", "call", h.v.Info().CallID, "to", to, "err", err)
		return Failed
	}
	if !h.s.IsDialled(ours) {
		return h.s.RouteWithOptions(ctx, h.v, ours, RouteOptions{RingTimeout: h.options.RingTimeout,
			ReturnUnanswered: h.options.ReturnUnanswered})
	}
	return h.dialExternal(ctx, to)
}

// IsExtension reports whether a destination consists of an extension only: 2 to 6 digits.
func IsExtension(to string) bool {
	return len(to) >= 2 && len(to) <= 6 && strings.Trim(to, "0123456789") == ""
}

// dialExternal calls an external number on the user's behalf.
func (h userRouting) dialExternal(ctx context.Context, to string) (outcome string) {
	limit := h.options.RingTimeout
	if limit == 0 {
		limit = externalRingTimeout
	}
	a, err := h.v.Ring(ctx, to, pbx.RingOptions{Timeout: limit, DivertedBy: h.u.ID})
	if err != nil {
		return OutcomeOfError(err)
	}
	if outcome = AttemptOutcome(AwaitAttempt(ctx, a)); outcome == Answered {
		h.v.SetTransferredTo(ctx, to)
	}
	return outcome
}
