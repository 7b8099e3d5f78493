package pbx

import (
	"context"
	"slices"
	"strings"

	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
)

// Handoff is a target that needs a script instead of ringing phones, and the reason.
type Lead struct {
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
func (l Lead) forOthers() bool {
	kind, _, _ := strings.Cut(l.To, ":")
	return slices.Contains([]string{"queue", "flow", "voicemail", "user"}, kind)
}

// Script controls a call on a goroutine of its own. Its context ends with the call, or when another script takes
// over. If it returns while the caller is not connected, the call ends.
type Script func(ctx context.Context, v *Visit)

// scriptFor returns the script for a target; nil if there is none.
func (s *Switch) script(l Lead) Script {
	if s.Attend == nil {
		return nil
	}
	return s.Attend(l)
}

// resolveEntry resolves a directory entry to the phones of a user or to a script.
func (s *Switch) way(ctx context.Context, d Destination) (reach, *Refusal, error) {
	switch {
	case d.Leads != "":
		return s.ledBy(reach{}, Lead{Org: d.Org, To: d.Leads})
	case d.UserID == "":
		return reach{}, nowhere(), nil
	case d.Led:
		return s.ledBy(reach{}, Lead{Org: d.Org, To: "user:" + d.UserID})
	}
	r, refusal, err := s.phonesOf(ctx, d, "")
	if refusal != nil && refusal.Reason == "no_answer" && d.After {
		return s.ledBy(r, Lead{Org: d.Org, To: "user:" + d.UserID, Unanswered: "unreachable"})
	}
	return r, refusal, err
}

func (s *Switch) ledBy(r reach, l Lead) (reach, *Refusal, error) {
	if r.script = s.script(l); r.script == nil {
		return r, nowhere(), nil
	}
	r.lead = l
	return r, nil, nil
}

func nowhere() *Refusal {
	return &Refusal{Status: 480, Phrase: "It leads nowhere", Reason: "no_route"}
}

// afterNoAnswer returns the script that follows if the phones of a user did not answer; nil if none follows.
func (c *liveCall) afterwards(to reach, e sip.Failed) *reach {
	if to.user == nil || !to.user.After || c.done {
		return nil
	}
	next, refusal, err := c.sw.ledBy(reach{}, Lead{Org: c.new.Org, To: "user:" + to.user.UserID, Unanswered: inVain(e)})
	if refusal != nil || err != nil {
		return nil
	}
	return &next
}

// unansweredReason returns the reason why phones did not answer.
func inVain(e sip.Failed) string {
	switch outcomeOf(e.Status, e.Q850).Reason {
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
func (c *liveCall) receive(ctx context.Context, to reach) {
	c.sw.know(c.a)
	if !c.begin(ctx) {
		c.unwritten()
		return
	}
	c.visitBy(ctx, to, c.a)
}

// runScript runs a script for a leg of the call.
func (c *liveCall) visitBy(ctx context.Context, to reach, l *leg) {
	v := newVisit(ctx, c, l)
	v.lead = to.lead
	if c.visit != nil {
		c.visit.cancel()
	}
	c.visit = v
	c.visits = append(c.visits, v)
	c.step("led", l, detail{"to": to.lead.To, "unanswered": to.lead.Unanswered})
	c.sw.running.Add(1)
	go func() {
		defer c.sw.running.Done()
		defer v.cancel()
		defer close(v.gone)
		to.script(v.ctx, v)
		c.inbox.push(message{run: func(ctx context.Context) { c.scriptOver(ctx, v) }})
	}()
}

// scriptEnded ends the call if no script controls the caller any more and no party was connected.
func (c *liveCall) scriptOver(_ context.Context, v *Visit) {
	if c.visit != v || c.done {
		return
	}
	c.dismiss(v, "no_answer")
}

// endScripted ends a call whose script has ended.
func (c *liveCall) dismiss(v *Visit, reason string) {
	o := call.Outcome{Reason: reason, HangupBy: "system", Missed: v.missed}
	if l := v.leg; l.in != nil && !l.up() && !l.over {
		status := statusOf(reason)
		o.SIPStatus = status
		for _, h := range c.hunts {
			h.stop()
		}
		l.in.Reject(status, "", 0)
		c.legOver(l, reason, status)
	}
	c.hangUpAll(o, normalClearing)
}

// statusOfReason returns the SIP status for a caller who was never answered.
func statusOf(reason string) int {
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
