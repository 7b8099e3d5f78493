package smpp

import "strings"

// State is the state of a message (§5.2.28). Zero and values above 8 are from SMPP 5.0.
type State uint8

// States. All but Scheduled, Enroute and Accepted are final.
const (
	Scheduled State = iota
	Enroute
	Delivered
	Expired
	Deleted
	Undeliverable
	Accepted
	Unknown
	Rejected
	Skipped
)

var stateNames = [...]string{"SCHEDLD", "ENROUTE", "DELIVRD", "EXPIRED", "DELETED", "UNDELIV", "ACCEPTD", "UNKNOWN", "REJECTD", "SKIPPED"}

// String returns the state as in a receipt (appendix B).
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "UNKNOWN"
}

// Final reports whether the state can no longer change.
func (s State) Final() bool { return s != Enroute && s != Accepted && s != Scheduled }

// parseState parses the state words of SMSCs, which are not always those of the specification.
func parseState(word string) State {
	word = strings.ToUpper(word)
	for _, v := range []struct {
		prefix string
		state  State
	}{
		{"DELIV", Delivered}, {"DELET", Deleted}, {"EXPI", Expired}, {"UNDEL", Undeliverable}, {"FAIL", Undeliverable}, {"ACCEP", Accepted},
		{"ACKED", Accepted}, {"ENROU", Enroute}, {"BUFFER", Enroute}, {"QUEUED", Enroute}, {"SUBMIT", Enroute}, {"SENT", Enroute},
		{"REJ", Rejected}, {"BLOCK", Rejected}, {"SCHED", Scheduled}, {"SKIP", Skipped}, {"CANCEL", Deleted}, {"NOTDELIV", Undeliverable},
	} {
		if strings.HasPrefix(word, v.prefix) {
			return v.state
		}
	}
	return Unknown
}
