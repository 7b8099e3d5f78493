package cause

import "testing"

func TestOutcomeOf_SIPStatus(t *testing.T) {
	t.Parallel()
	for status, reason := range map[int]string{486: "busy", 600: "busy", 603: "rejected", 403: "rejected", 408: "no_answer", 480: "no_answer",
		404: "invalid_number", 484: "invalid_number", 487: "canceled", 500: "carrier_error", 503: "carrier_error", 488: "carrier_error"} {
		if o := Outcome(status, 0); o.Reason != reason || o.SIPStatus != status {
			t.Errorf("%d: got %+v, want reason %s", status, o, reason)
		}
	}
}

func TestStatusForCaller_HidesInternalFailures(t *testing.T) {
	t.Parallel()
	for status, shows := range map[int]int{486: 486, 603: 603, 404: 404, 488: 488, 430: 480, 408: 480, 487: 480, 401: 503, 407: 503,
		500: 503, 503: 503, 302: 480} {
		if got := StatusForCaller(status); got != shows {
			t.Errorf("%d: the caller is shown %d, want %d", status, got, shows)
		}
	}
}

func TestFailureRank_Order(t *testing.T) {
	t.Parallel()
	order := []int{603, 486, 404, 500, 480}
	for i := 1; i < len(order); i++ {
		if Rank(order[i-1]) >= Rank(order[i]) {
			t.Errorf("%d must rank before %d", order[i-1], order[i])
		}
	}
	for status, again := range map[int]bool{503: true, 408: true, 486: false, 404: false, 603: false} {
		if Retryable(status) != again {
			t.Errorf("%d: another trunk is tried: %v, want %v", status, !again, again)
		}
	}
}

func TestStatusInDialog_KeepsOtherDialog(t *testing.T) {
	t.Parallel()
	for _, ends := range []int{404, 408, 410, 481, 482, 483, 484, 485, 502, 604} { // RFC 5057 §5.1
		if got := StatusInDialog(ends); got != 488 {
			t.Errorf("%d is passed on as %d, want 488", ends, got)
		}
	}
}
