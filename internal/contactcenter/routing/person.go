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
	maxForwards   = 5                // per call, including the diversions of other switches
	eachDevice    = 20 * time.Second // per phone, if the phones of a user ring in order
	ringOutside   = 45 * time.Second // an external number takes longer until it rings
	doNotDisturb  = "do_not_disturb"
	forwardAlways = "always"
)

// userRouting routes one caller to a user by the user's rules.
type host struct {
	s    *Service
	v    *pbx.Visit
	u    user.User
	wish Wish
}

// routeUser routes a caller to a user. If the phones rang already, it applies only the rules for unanswered calls.
func (s *Service) person(ctx context.Context, v *pbx.Visit, id string, l pbx.Lead) (outcome string) {
	u, err := s.Users.Get(ctx, s.DB.Read(ctx), l.Org, id)
	switch {
	case db.IsNone(err) || err == nil && u.Status == user.Removed:
		v.Step("led_in_vain", map[string]any{"to": l.To, "reason": "there is no such user"})
		return Failed
	case err != nil:
		s.Log.Error("user not read", "call", v.Info().CallID, "org", l.Org, "err", err)
		return Failed
	case u.Status == user.Suspended:
		return Unreachable
	}
	h := host{s, v, u, wish(ctx)}
	if l.Unanswered != "" {
		return h.after(ctx, l.Unanswered)
	}
	return h.receive(ctx)
}

// route applies the user's rules: forward always, do-not-disturb, then ringing, then the rules for unanswered calls.
func (h host) receive(ctx context.Context) (outcome string) {
	switch {
	case h.u.Forward.Always != nil:
		if outcome = h.forward(ctx, forwardAlways, *h.u.Forward.Always); done(outcome) {
			return outcome
		}
		return h.mailbox(ctx, outcome)
	case h.u.DND.On(h.s.Now()):
		return h.after(ctx, doNotDisturb)
	}
	if outcome = h.ring(ctx); done(outcome) {
		return outcome
	}
	return h.after(ctx, outcome)
}

// ring rings the user's phones, all at once or in order.
func (h host) ring(ctx context.Context) (outcome string) {
	o := pbx.Ringing{Timeout: h.wish.Ring, InOrder: h.u.RingStrategy == "in_order"}
	if o.InOrder && o.Timeout == 0 {
		o.Timeout = eachDevice
	}
	a, err := h.v.Ring(ctx, "user:"+h.u.ID, o)
	if err != nil {
		return orGone(err)
	}
	return outcomeOf(result(ctx, a))
}

// routeUnanswered applies the user's rules for a call that was not answered: conditional forwarding, then voicemail.
func (h host) after(ctx context.Context, why string) (outcome string) {
	outcome = why
	if why == doNotDisturb {
		outcome = NoAnswer
	}
	if to := h.other(why); to != nil {
		if led := h.forward(ctx, why, *to); done(led) {
			return led
		}
	}
	return h.mailbox(ctx, outcome)
}

// forwardTarget returns the destination for a call that the user did not answer; nil: none. A declined call and
// do-not-disturb count as busy.
func (h host) other(why string) *string {
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
func (h host) mailbox(ctx context.Context, otherwise string) (outcome string) {
	if !h.u.Voicemail.Enabled || h.wish.Back || h.s.Mailbox == nil {
		return otherwise
	}
	return h.s.lead(ctx, h.v, "voicemail:"+h.u.ID)
}

// forwardTo routes the caller to another destination on the user's behalf. Loops end because each user forwards a
// call at most once and all forwards of a call are counted, diversions of other switches included.
func (h host) forward(ctx context.Context, why, to string) (outcome string) {
	t := tripOf(ctx)
	note := map[string]any{"user_id": h.u.ID, "to": to, "reason": why}
	switch {
	case t.forwarded[h.u.ID]:
		note["problem"] = "the user forwarded the call already"
	case len(t.forwarded)+h.v.Info().Diversions >= maxForwards:
		note["problem"] = "the call was forwarded too often"
	}
	if note["problem"] != nil {
		h.v.Step("not_forwarded", note)
		return Unreachable
	}
	t.forward(h.u.ID)
	h.v.Step("forwarded", note)
	if IsExtension(to) {
		to = "ext:" + to
	}
	ours, err := h.s.resolve(ctx, pbx.Lead{Org: h.u.OrgID, To: to})
	if err != nil {
		h.s.Log.Error("destination not found", "call", h.v.Info().CallID, "to", to, "err", err)
		return Failed
	}
	if h.s.room(ours) != nil {
		return h.s.leadWith(ctx, h.v, ours, Wish{Ring: h.wish.Ring, Back: h.wish.Back})
	}
	return h.outside(ctx, to)
}

// IsExtension reports whether a destination consists of an extension only: 2 to 6 digits.
func IsExtension(to string) bool {
	return len(to) >= 2 && len(to) <= 6 && strings.Trim(to, "0123456789") == ""
}

// dialExternal calls an external number on the user's behalf.
func (h host) outside(ctx context.Context, to string) (outcome string) {
	limit := h.wish.Ring
	if limit == 0 {
		limit = ringOutside
	}
	a, err := h.v.Ring(ctx, to, pbx.Ringing{Timeout: limit, Deflected: h.u.ID})
	if err != nil {
		return orGone(err)
	}
	if outcome = outcomeOf(result(ctx, a)); outcome == Answered {
		h.v.Transferred(ctx, to)
	}
	return outcome
}
