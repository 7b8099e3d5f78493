package routing

import (
	"context"
	"strings"
	"time"

	"soniq/internal/identity/user"
	"soniq/internal/platform/db"
	"soniq/internal/telephony/pbx"
)

// This file leads callers to people by their own rules: do-not-disturb, forwarding, the order of their phones, voicemail.

const (
	maxForwards   = 5                // of one call, those of other switches among them
	eachDevice    = 20 * time.Second // rings, where the phones of a user are rung in order
	ringOutside   = 45 * time.Second // a number outside takes its time until it rings
	doNotDisturb  = "do_not_disturb"
	forwardAlways = "always"
)

// A host is a person a caller is led to.
type host struct {
	s    *Service
	v    *pbx.Visit
	u    user.User
	wish Wish
}

// person leads a caller to a user. Where the phones rang already, only what comes after that is left.
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

// receive does what the user wants of calls.
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

// ring rings the phones, all at once or one after the other.
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

// after does what the user wants of calls they did not take.
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

// other is where calls go that the user did not take; nil: nowhere. Who declines a call, or does not want to be disturbed, is busy.
func (h host) other(why string) *string {
	switch why {
	case Busy, Rejected, doNotDisturb:
		return h.u.Forward.Busy
	case Unreachable, Failed:
		return h.u.Forward.Unreachable
	}
	return h.u.Forward.NoAnswer
}

// mailbox lets the caller leave a message, where the user has voicemail and nobody wants the caller back.
func (h host) mailbox(ctx context.Context, otherwise string) (outcome string) {
	if !h.u.Voicemail.Enabled || h.wish.Back || h.s.Mailbox == nil {
		return otherwise
	}
	return h.s.lead(ctx, h.v, "voicemail:"+h.u.ID)
}

// forward leads the caller elsewhere in the user's name. Forwards are counted, and nobody forwards a call twice, so that loops end.
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

// IsExtension reports whether a destination is an extension that stands by itself.
func IsExtension(to string) bool {
	return len(to) >= 2 && len(to) <= 6 && strings.Trim(to, "0123456789") == ""
}

// outside calls a number of the public network on the user's behalf.
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
