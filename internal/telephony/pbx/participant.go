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
func (c *liveCall) addParticipant(_ context.Context, x call.AddParticipant, done commandReply) {
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
	c.runAsync(routeTimeout, func(ctx context.Context) func(context.Context) {
		r, refusal, err := c.sw.resolveDirect(ctx, from, x.To, "")
		return func(ctx context.Context) {
			if err == nil && refusal == nil {
				refusal = cmp.Or(c.refuseDuplicate(r, nil), c.refuseSupervisor(r))
			}
			if err == nil && refusal == nil && c.connectedNow() {
				c.dialParticipant(ctx, x, r, done)
				return
			}
			r.release()
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

func (c *liveCall) dialParticipant(ctx context.Context, x call.AddParticipant, r resolvedDestination, done commandReply) {
	role := "callee"
	if r.user != nil {
		role = "agent"
	}
	h := c.newDial(role, r, c.near())
	h.legID = x.LegID
	h.onRing = func(l *leg, _ sip.Provisional) {
		c.change(context.Background())
		done.result(call.Result{LegID: l.id})
	}
	h.onAnswer = func(ctx context.Context, l *leg, _ media.Description) {
		c.extra = append(c.extra, l)
		c.addEntry("participant.joined", l, nil)
		c.wireMedia()
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
		c.after(confirmTime, func(context.Context) { done.result(call.Result{LegID: id}) })
	}
}

// removeParticipant hangs up one party. At least two have to stay.
func (c *liveCall) removeParticipant(ctx context.Context, x call.RemoveParticipant, done commandReply) {
	l := c.legOf(x.LegID)
	switch {
	case l == nil:
		done.fail(op.NotFound("participant"))
	case len(c.extra) == 0 || c.transfer.running():
		done.state(c, "only two are left; end the call instead")
	default:
		c.hangUp(l, sip.Reason{Q850: normalClearing})
		c.legGone(ctx, l, call.Outcome{}, normalClearing)
		done.ok()
	}
}

// extraLegGone handles a participant who hung up.
func (c *liveCall) extraLegGone(ctx context.Context, l *leg) bool {
	if !slices.Contains(c.extra, l) {
		return false
	}
	c.extra = without(c.extra, l)
	c.continueWithRest(ctx)
	return true
}

// promote moves a participant to the place of a main side that left.
func (c *liveCall) promote() *leg {
	l := c.extra[0]
	c.extra = c.extra[1:]
	return l
}
