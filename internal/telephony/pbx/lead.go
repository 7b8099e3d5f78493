package pbx

import (
	"context"
	"slices"
	"strings"

	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
)

// A Lead is where a caller is to be led, and why: what needs more than phones that ring.
type Lead struct {
	Org string
	// To is queue:que_…, flow:flw_…, voicemail: with the id of a user, a queue or a flow, or user:usr_… for people who want more than
	// that their phones ring.
	To string
	// Unanswered says that the phones of the user in To have rung already, or could not: busy, no_answer, unreachable or rejected.
	// Only what comes after that is wanted.
	Unanswered string
}

// forOthers reports whether somebody else may be led there in the place of a user: anywhere but to what is the user's own.
func (l Lead) forOthers() bool {
	kind, _, _ := strings.Cut(l.To, ":")
	return slices.Contains([]string{"queue", "flow", "voicemail", "user"}, kind)
}

// A Script leads a caller, on a goroutine of its own. Its context ends with the call, or when the caller is led elsewhere. When it
// returns while the caller is connected with nobody, the call ends.
type Script func(ctx context.Context, v *Visit)

// script finds who leads a caller there; nil where nobody does.
func (s *Switch) script(l Lead) Script {
	if s.Attend == nil {
		return nil
	}
	return s.Attend(l)
}

// way is where a destination of ours leads: to the phones of a user, or to a script.
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

// afterwards is what comes after the phones of a user were rung in vain; nil: nothing.
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

// inVain says how phones were rung in vain.
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

// receive lets a caller who came in be led.
func (c *liveCall) receive(ctx context.Context, to reach) {
	c.sw.know(c.a)
	if !c.begin(ctx) {
		c.unwritten()
		return
	}
	c.visitBy(ctx, to, c.a)
}

// visitBy has a leg of the call led by a script.
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

// scriptOver ends the call when nobody leads the caller any more and nobody was found.
func (c *liveCall) scriptOver(_ context.Context, v *Visit) {
	if c.visit != v || c.done {
		return
	}
	c.dismiss(v, "no_answer")
}

// dismiss ends the call of a caller who is led no further.
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

// statusOf is what a caller is told who was never answered.
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
