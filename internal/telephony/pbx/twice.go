package pbx

import (
	"context"
	"strings"
)

// This file keeps people from being in one call twice: their telephone would ring beside the one they speak on.

// takesPart reports whether a user speaks in the call, or is being fetched to; but is a leg that does not count.
func (c *liveCall) takesPart(user string, but *leg) bool {
	for _, l := range c.legs {
		if user != "" && l.caller.UserID == user && l != but && l.role != "monitor" && !l.over && l.owner.Load() == c {
			return true
		}
	}
	return false
}

// twice refuses to fetch somebody who is in the call; but may be fetched, to another telephone of theirs.
func (c *liveCall) twice(r reach, but *leg) *Refusal {
	if !c.takesPart(r.userID(), but) {
		return nil
	}
	return inCall(alreadyIn)
}

const alreadyIn = "they are in this call already"

func inCall(why string) *Refusal { return &Refusal{Status: 486, Phrase: why, Reason: "in_call"} }

// userID is whose phones are rung; "" for other ways.
func (r reach) userID() string {
	if r.user != nil {
		return r.user.UserID
	}
	id, ok := strings.CutPrefix(r.lead.To, "user:")
	if !ok {
		return ""
	}
	return id
}

// supervises refuses to add somebody who is on the call as its supervisor.
func (c *liveCall) supervises(r reach) *Refusal {
	user := r.userID()
	for _, m := range c.monitors {
		if user != "" && m.user == user && m.ended.IsZero() {
			return inCall("they supervise this call: set the monitor's mode to barge")
		}
	}
	return nil
}

// supervisorTakesOver ends the supervision by somebody who speaks in the call now.
func (c *liveCall) supervisorTakesOver(ctx context.Context, user string) {
	for _, m := range c.monitors {
		if user != "" && m.user == user {
			c.overMonitor(ctx, m)
		}
	}
}
