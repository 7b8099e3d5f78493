// Package cause maps SIP statuses, Q.850 causes and outcomes of calls to each other.
package cause

import (
	"soniq/internal/telephony/call"
)

// Outcome returns the outcome of a call for a final failure of the called side.
func Outcome(status, q850 int) call.Outcome {
	o := call.Outcome{SIPStatus: status, Q850: q850, HangupBy: "callee"}
	switch status {
	case 486, 600:
		o.Reason = "busy"
	case 603, 403, 606, 607, 608:
		o.Reason = "rejected"
	case 408, 480:
		o.Reason, o.HangupBy = "no_answer", "system"
	case 404, 484, 410, 604:
		o.Reason = "invalid_number"
	case 487:
		o.Reason, o.HangupBy = "canceled", "caller"
	default:
		o.Reason, o.HangupBy = "carrier_error", "system"
	}
	return o
}

// StatusForCaller returns the status that the caller gets for a failure of the called side. Statuses that only
// concern us and the other side are replaced: a lost connection, a refused log-in, a server error.
func StatusForCaller(status int) int {
	switch {
	case status == 430, status == 408, status == 481, status == 487:
		return 480
	case status == 401, status == 407:
		return 503
	case status < 400:
		return 480
	case status >= 500 && status < 600:
		return 503
	}
	return status
}

// Rank orders the failures of several phones. The lowest rank is returned to the caller (RFC 3261 §16.7 step
// 6): 6xx first, then statuses with more information than "not available".
func Rank(status int) int {
	switch {
	case status >= 600:
		return 0
	case status == 486:
		return 1
	case status == 480, status == 408, status == 430:
		return 4
	case status >= 500:
		return 3
	}
	return 2
}

// Retryable reports whether another trunk may succeed after a failure with this status.
func Retryable(status int) bool {
	return status == 408 || status == 430 || status >= 500 && status < 600
}

// Q.850 causes that we send in Reason headers (RFC 3326).
const (
	Preemption     = 8
	NormalClearing = 16
	NoRoute        = 3
	NoAnswer       = 19
	NormalUnspec   = 31
	TempFailure    = 41
)

// StatusInDialog maps the other side's refusal to a status that does not end this side's dialog. 404, 410, 416,
// 482–485, 489, 502, 604, 481 and 408 would (RFC 5057 §5.1).
func StatusInDialog(status int) int {
	switch status {
	case 488, 491, 500, 603, 606:
		return status
	}
	return 488
}
