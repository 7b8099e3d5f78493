package pbx

import "soniq/internal/telephony/call"

// This file is the one place where SIP statuses become outcomes of calls, and the other way round.

// outcomeOf says what a final failure of the called side means for the call.
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

// shown is the status the caller gets for a failure of the called side. What only concerns us and the other side (a lost
// connection, a refused log-in, a server in trouble) is not passed on as it is.
func shown(status int) int {
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

// rank orders failures of several phones: the lowest is shown to the caller (RFC 3261 §16.7, step 6: 6xx first; of
// the others, one that tells more than "not there").
func rank(status int) int {
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

// retryable reports whether another trunk may succeed where one failed so.
func retryable(status int) bool {
	return status == 408 || status == 430 || status >= 500 && status < 600
}

// Q.850 causes we name ourselves in Reason headers.
const (
	preemption     = 8
	normalClearing = 16
	noRoute        = 3
	noAnswer       = 19
	normalUnspec   = 31
	tempFailure    = 41
)
