package pbx

import (
	"cmp"
	"context"
	"slices"
	"time"

	"soniq/internal/platform/op"
	"soniq/internal/protocol/media"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
)

// maxParties limits a conference, because one mixer on one node mixes it.
const maxParties = 16

// addParticipant dials another party into the call. The command is confirmed when that party rings.
func (c *liveCall) addParticipant(_ context.Context, x call.AddParticipant, done reply) {
	switch {
	case !c.connectedNow():
		done.state(c, "the call is not connected")
		return
	case c.transfer.running():
		done.state(c, "a transfer is under way")
		return
	case len(c.extra)+2 >= maxParties:
		done.fail(op.Fail("concurrency_limit", "the call has as many participants as it can"))
		return
	}
	from := c.near().caller
	if from.Org == "" {
		from = c.caller
	}
	from.ShowNumber, from.Program = x.From, true
	c.aside(routeTimeout, func(ctx context.Context) func(context.Context) {
		r, refusal, err := c.sw.people(ctx, from, x.To, "")
		return func(ctx context.Context) {
			if err == nil && refusal == nil {
				refusal = cmp.Or(c.twice(r, nil), c.supervises(r))
			}
			if err == nil && refusal == nil && c.connectedNow() {
				c.fetch(ctx, x, r, done)
				return
			}
			r.close()
			switch {
			case err != nil:
				done.fail(err)
			case refusal != nil:
				done.fail(refusal.problem())
			default:
				done.state(c, "the call is not connected")
			}
		}
	})
}

func (c *liveCall) fetch(ctx context.Context, x call.AddParticipant, r reach, done reply) {
	role := "callee"
	if r.user != nil {
		role = "agent"
	}
	h := c.newHunt(role, r, c.near())
	h.legID = x.LegID
	h.onRing = func(l *leg, _ sip.Provisional) {
		c.change(context.Background())
		done.result(call.Result{LegID: l.id})
	}
	h.onAnswer = func(ctx context.Context, l *leg, _ media.Description) {
		c.extra = append(c.extra, l)
		c.step("participant.joined", l, nil)
		c.wire()
		c.change(ctx)
		done.result(call.Result{LegID: l.id})
	}
	h.onFail = func(ctx context.Context, e sip.Failed) {
		c.change(ctx)
		done.fail(op.Fail("carrier_error", "the participant did not answer: "+outcomeOf(e.Status, e.Q850).Reason))
	}
	limit := x.Timeout
	if limit <= 0 {
		limit = transferTimeout
	}
	h.start(ctx, min(limit, 2*time.Minute))
	if len(h.legs) > 0 {
		id := h.legs[0].id
		c.later(confirmTime, func(context.Context) { done.result(call.Result{LegID: id}) })
	}
}

// removeParticipant hangs up one party. At least two have to stay.
func (c *liveCall) removeParticipant(ctx context.Context, x call.RemoveParticipant, done reply) {
	l := c.legOf(x.LegID)
	switch {
	case l == nil:
		done.fail(op.NotFound("participant"))
	case len(c.extra) == 0 || c.transfer.running():
		done.state(c, "only two are left; end the call instead")
	default:
		c.hangUp(l, sip.Reason{Q850: normalClearing})
		c.gone(ctx, l, call.Outcome{}, normalClearing)
		done.ok()
	}
}

// extraLegGone handles a participant who hung up.
func (c *liveCall) extraGone(ctx context.Context, l *leg) bool {
	if !slices.Contains(c.extra, l) {
		return false
	}
	c.extra = without(c.extra, l)
	c.stay(ctx)
	return true
}

// promote moves a participant to the place of a main side that left.
func (c *liveCall) promote() *leg {
	l := c.extra[0]
	c.extra = c.extra[1:]
	return l
}
