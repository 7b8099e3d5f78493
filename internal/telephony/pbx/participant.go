package pbx

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"soniq/internal/platform/op"
	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx/cause"
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
	h.onAnswer = func(ctx context.Context, l *leg, _ sdp.Description) {
		c.extra = append(c.extra, l)
		c.addEntry("participant.joined", l, nil)
		c.wireMedia()
		c.change(ctx)
		done.result(call.Result{LegID: l.id})
	}
	h.onFail = func(ctx context.Context, e sip.Failed) {
		c.change(ctx)
		done.fail(op.Fail("carrier_error", "the participant did not answer: "+cause.Outcome(e.Status, e.Q850).Reason))
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
		c.hangUp(l, sip.Reason{Q850: cause.NormalClearing})
		c.legGone(ctx, l, call.Outcome{}, cause.NormalClearing)
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

// Prevention of duplicate participants: a second leg of the same user would ring the phone that already talks in the
// call.

// isParticipant reports whether a user talks in the call or is being dialled. The leg but does not count.
func (c *liveCall) isParticipant(user string, but *leg) bool {
	for _, l := range c.legs {
		if user != "" && l.caller.UserID == user && l != but && l.role != "monitor" && !l.over && l.owner.Load() == c {
			return true
		}
	}
	return false
}

// refuseDuplicate refuses to dial a user who is in the call. A user whose only leg is but may be dialled on another phone.
func (c *liveCall) refuseDuplicate(r resolvedDestination, but *leg) *Refusal {
	if !c.isParticipant(r.userID(), but) {
		return nil
	}
	return inCallRefusal(alreadyInCall)
}

const alreadyInCall = "the user is in this call already"

func inCallRefusal(why string) *Refusal { return &Refusal{Status: 486, Phrase: why, Reason: "in_call"} }

// userID returns the user whose phones are rung; empty for other destinations.
func (r resolvedDestination) userID() string {
	if r.user != nil {
		return r.user.UserID
	}
	id, ok := strings.CutPrefix(r.handoff.To, "user:")
	if !ok {
		return ""
	}
	return id
}

// refuseSupervisor refuses to add a user who supervises the call.
func (c *liveCall) refuseSupervisor(r resolvedDestination) *Refusal {
	user := r.userID()
	for _, m := range c.monitors {
		if user != "" && m.user == user && m.ended.IsZero() {
			return inCallRefusal("the user supervises this call: set the mode of the monitor to barge")
		}
	}
	return nil
}

// endSupervisionOf ends the supervision by a user who now talks in the call.
func (c *liveCall) endSupervisionOf(ctx context.Context, user string) {
	for _, m := range c.monitors {
		if user != "" && m.user == user {
			c.stopMonitor(ctx, m)
		}
	}
}
