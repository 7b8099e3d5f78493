package call

import "slices"

// A Status is the state of a call.
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

// moves are the only moves between states. A state without any is final.
var moves = map[Status][]Status{
	Queued:     {Ringing, InProgress, Canceled, Failed},
	Ringing:    {InProgress, Missed, NoAnswer, Busy, Failed, Canceled},
	InProgress: {OnHold, Completed},
	OnHold:     {InProgress, Completed},
}

// Can reports whether a call may go from s to next.
func (s Status) Can(next Status) bool { return slices.Contains(moves[s], next) }

// Final reports whether nothing can happen to the call any more.
func (s Status) Final() bool { return len(moves[s]) == 0 }

// before lists the states from which next can be reached, for conditional updates.
func before(next Status) []string {
	var from []string
	for _, s := range Statuses {
		if s.Can(next) {
			from = append(from, string(s))
		}
	}
	return from
}

// An Outcome says how a call ended.
type Outcome struct {
	Reason    string // end_reason
	HangupBy  string
	SIPStatus int
	Q850      int
	Missed    string // missed_reason, where more is known than that nobody answered
}

// NotMissed is given as the reason why a call was missed where it was not: nobody was connected, but the caller got what they wanted,
// such as to be called back. It ends as canceled.
const NotMissed = "not_missed"

// last is the final state of a call that was never connected. Calls from outside, and calls inside the
// organisation that rang in vain, are told apart: only the former are missed.
func (o Outcome) last(d Direction) Status {
	if o.Missed == NotMissed {
		return Canceled
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

// missed is why an inbound call was missed.
func (o Outcome) missed() string {
	if o.Missed != "" {
		return o.Missed
	}
	if o.Reason == "busy" || o.Reason == "rejected" {
		return "rejected"
	}
	return "no_answer"
}
