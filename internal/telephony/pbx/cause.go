package pbx

import "soniq/internal/telephony/call"

// Mapping between SIP statuses, Q.850 causes and outcomes of calls. All of it is in this file.

// outcomeOf returns the outcome of a call for a final failure of the called side.
func outcomeOf(status, q850 int) call.Outcome {
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

// statusForCaller returns the status that the caller gets for a failure of the called side. Statuses that only
// concern us and the other side are replaced: a lost connection, a refused log-in, a server error.
func statusForCaller(status int) int {
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

// failureRank orders the failures of several phones. The lowest rank is returned to the caller (RFC 3261 §16.7 step
// 6): 6xx first, then statuses with more information than "not available".
func failureRank(status int) int {
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

// retryable reports whether another trunk may succeed after a failure with this status.
func retryable(status int) bool {
	return status == 408 || status == 430 || status >= 500 && status < 600
}

// Q.850 causes that we send in Reason headers (RFC 3326).
const (
	preemption     = 8
	normalClearing = 16
	noRoute        = 3
	noAnswer       = 19
	normalUnspec   = 31
	tempFailure    = 41
)
