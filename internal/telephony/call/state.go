package call

import "slices"

// Status is the state of a call.
type Status string

// The states a call can be in.
const (
	Queued     Status = "queued"
	Ringing    Status = "ringing"
	InProgress Status = "in_progress"
	OnHold     Status = "on_hold"
	Completed  Status = "completed"
	Missed     Status = "missed"
	NoAnswer   Status = "no_answer"
	Busy       Status = "busy"
	Failed     Status = "failed"
	Canceled   Status = "canceled"
)

// Statuses lists every state.
var Statuses = []Status{Queued, Ringing, InProgress, OnHold, Completed, Missed, NoAnswer, Busy, Failed, Canceled}

// transitions lists the allowed state transitions. A state without any is final.
var transitions = map[Status][]Status{
	Queued:     {Ringing, InProgress, Canceled, Failed},
	Ringing:    {InProgress, Completed, Missed, NoAnswer, Busy, Failed, Canceled},
	InProgress: {OnHold, Completed},
	OnHold:     {InProgress, Completed},
}

// Can reports whether a call may go from s to next.
func (s Status) Can(next Status) bool { return slices.Contains(transitions[s], next) }

// Final reports whether s is a final state.
func (s Status) Final() bool { return len(transitions[s]) == 0 }

// Outcome holds the end reason of a call.
type Outcome struct {
	Reason    string // end_reason
	HangupBy  string
	SIPStatus int
	Q850      int
	Missed    string // missed_reason, if a more exact one than "no answer" is known
}

// NotMissed is the Missed value of an unanswered call that counts as handled, for example because the caller accepted
// a callback. The call ends as canceled.
const NotMissed = "not_missed"

// Served is the Missed value of a call that a flow served to its end without calling for a person. The call ends as completed.
const Served = "served"

// FlowEnded is the end_reason of a call that a flow ended without giving a reason.
const FlowEnded = "flow_ended"

// finalStatus returns the final state of an unanswered call. Only inbound calls can be missed; internal and outbound
// ones end as no_answer, busy, canceled or failed.
func (o Outcome) finalStatus(d Direction) Status {
	switch o.Missed {
	case NotMissed:
		return Canceled
	case Served:
		return Completed
	}
	if d == Inbound {
		return Missed
	}
	switch o.Reason {
	case "canceled", "caller_hangup", "api", "transfer":
		return Canceled
	case "busy", "rejected":
		return Busy
	case "no_answer", "timeout":
		return NoAnswer
	}
	return Failed
}

// missedReason returns the missed_reason of an inbound call.
func (o Outcome) missedReason() string {
	if o.Missed != "" {
		return o.Missed
	}
	if o.Reason == "busy" || o.Reason == "rejected" {
		return "rejected"
	}
	return "no_answer"
}
