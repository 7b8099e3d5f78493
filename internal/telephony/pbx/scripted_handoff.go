package pbx

import (
	"context"
	"slices"
	"strings"

	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx/cause"
)

// Handoff is a target that needs a script instead of ringing phones, and the reason.
type Handoff struct {
	Org string
	// To is queue:que_…, flow:flw_…, voicemail: with the ID of a user, a queue or a flow, or user:usr_… for
	// users with rules of their own.
	To string
	// Unanswered is set if the phones of the user in To have rung already or could not: busy, no_answer, unreachable
	// or rejected. Then only the steps after no answer run.
	Unanswered string
}

// allowsOthers reports whether another caller may be transferred to the target. It is false for targets that belong
// to the calling user.
func (l Handoff) allowsOthers() bool {
	kind, _, _ := strings.Cut(l.To, ":")
	return slices.Contains([]string{"queue", "flow", "voicemail", "user"}, kind)
}

// Script controls a call on a goroutine of its own. Its context ends with the call, or when another script takes
// over. If it returns while the caller is not connected, the call ends.
type Script func(ctx context.Context, v *ScriptedCall)

// scriptFor returns the script for a target; nil if there is none.
func (s *Switch) scriptFor(l Handoff) Script {
	return s.cfg.Scripts.Attend(l)
}

// resolveEntry resolves a directory entry to the phones of a user or to a script.
func (s *Switch) resolveEntry(ctx context.Context, d Destination) (resolvedDestination, *Refusal, error) {
	switch {
	case d.Target != "":
		return s.routeToScript(resolvedDestination{}, Handoff{Org: d.Org, To: d.Target})
	case d.UserID == "":
		return resolvedDestination{}, noRouteRefusal(), nil
	case d.ScriptFirst:
		return s.routeToScript(resolvedDestination{}, Handoff{Org: d.Org, To: "user:" + d.UserID})
	}
	r, refusal, err := s.phonesOf(ctx, d, "")
	if refusal != nil && refusal.Reason == "no_answer" && d.ScriptAfterNoAnswer {
		return s.routeToScript(r, Handoff{Org: d.Org, To: "user:" + d.UserID, Unanswered: "unreachable"})
	}
	return r, refusal, err
}

func (s *Switch) routeToScript(r resolvedDestination, l Handoff) (resolvedDestination, *Refusal, error) {
	if r.script = s.scriptFor(l); r.script == nil {
		return r, noRouteRefusal(), nil
	}
	r.handoff = l
	return r, nil, nil
}

func noRouteRefusal() *Refusal {
	return &Refusal{Status: 480, Phrase: "the destination does not exist any more", Reason: "no_route"}
}

// afterNoAnswer returns the script that follows if the phones of a user did not answer; nil if none follows.
func (c *liveCall) afterNoAnswer(to resolvedDestination, e sip.Failed) *resolvedDestination {
	if to.user == nil || !to.user.ScriptAfterNoAnswer || c.done {
		return nil
	}
	next, refusal, err := c.sw.routeToScript(resolvedDestination{}, Handoff{Org: c.new.Org, To: "user:" + to.user.UserID,
		Unanswered: unansweredReason(e)})
	if refusal != nil || err != nil {
		return nil
	}
	return &next
}

// unansweredReason returns the reason why phones did not answer.
func unansweredReason(e sip.Failed) string {
	switch cause.Outcome(e.Status, e.Q850).Reason {
	case "busy":
		return "busy"
	case "rejected":
		return "rejected"
	case "no_answer":
		return "no_answer"
	}
	return "unreachable"
}

// receiveScripted starts the script of an inbound call.
func (c *liveCall) receiveScripted(ctx context.Context, to resolvedDestination) {
	c.sw.indexLeg(c.a)
	if !c.begin(ctx) {
		c.endNotWritten()
		return
	}
	c.runScript(ctx, to, c.a)
}

// runScript runs a script for a leg of the call.
func (c *liveCall) runScript(ctx context.Context, to resolvedDestination, l *leg) {
	v := newScriptedCall(ctx, c, l)
	v.handoff = to.handoff
	if c.scripted != nil {
		c.scripted.cancel()
	}
	c.scripted = v
	c.allScripted = append(c.allScripted, v)
	c.addEntry("call.routed", l, detail{"to": to.handoff.To, "unanswered": to.handoff.Unanswered})
	c.sw.running.Add(1)
	go func() {
		defer c.sw.running.Done()
		defer c.reportPanic()
		defer v.cancel()
		defer close(v.done)
		to.script(v.ctx, v)
		c.inbox.Push(message{run: func(ctx context.Context) { c.scriptEnded(ctx, v) }})
	}()
}

// scriptEnded ends the call if no script controls the caller any more and no party was connected.
func (c *liveCall) scriptEnded(_ context.Context, v *ScriptedCall) {
	v.party = nil
	if c.scripted != v || c.done {
		return
	}
	c.endScripted(v, "no_answer")
}

// returnToScript gives a caller back to the script that rang the party l, which has hung up, if the script asked for that.
func (c *liveCall) returnToScript(ctx context.Context, l *leg) bool {
	i := slices.IndexFunc(c.allScripted, func(v *ScriptedCall) bool { return v.party == l })
	if i < 0 || c.scripted != nil || len(c.extra) > 0 || c.done {
		return false
	}
	v := c.allScripted[i]
	if !v.leg.up() || c.other(l) != v.leg || v.ctx.Err() != nil {
		return false
	}
	if c.a == l {
		c.a = nil
	} else {
		c.b = nil
	}
	v.party, v.loop, v.playing = nil, nil, false
	v.connected.Store(false)
	c.scripted = v
	c.removeFromRecording(v.leg)
	c.suspendRecording(true)
	v.leg.isolated = false
	c.unholdByOffer(v.leg)
	c.countHold()
	c.wireMedia()
	c.change(ctx)
	select {
	case v.returned <- struct{}{}:
	default:
	}
	return true
}

// endScripted ends a call whose script has ended.
func (c *liveCall) endScripted(v *ScriptedCall, reason string) {
	o := call.Outcome{Reason: reason, HangupBy: "system", Missed: v.missed}
	if l := v.leg; l.in != nil && !l.up() && !l.over {
		status := statusOfReason(reason)
		o.SIPStatus = status
		for _, h := range c.dials {
			h.stop()
		}
		l.in.Reject(status, "", 0)
		c.markLegEnded(l, reason, status)
	}
	c.hangUpAll(o, cause.NormalClearing)
}

// statusOfReason returns the SIP status for a caller who was never answered.
func statusOfReason(reason string) int {
	switch reason {
	case "busy":
		return 486
	case "rejected":
		return 603
	case "invalid_number":
		return 404
	case "blocked":
		return 403
	}
	return 480
}
