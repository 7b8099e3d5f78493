package smpp

import "strings"

// A State is how far a message has come (§5.2.28); zero and those above 8 are SMPP 5.0's.
type State uint8

// States. Enroute and Accepted are not the last one.
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

// String is the state as a receipt has it (appendix B).
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "UNKNOWN"
}

// Final tells whether no other state follows.
func (s State) Final() bool { return s != Enroute && s != Accepted && s != Scheduled }

// parseState reads what centres write, which is not always what the specification has.
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
