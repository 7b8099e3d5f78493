package pbx

import (
	"context"
	"strings"
)

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

// refuseDuplicate refuses to dial a user who is in the call. The user of the leg but may be dialled on another phone.
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
