package pbx

import (
	"slices"
	"strings"

	"soniq/internal/telephony/call"
)

// Ring describes a call that rings at a user.
type Ring struct {
	Org, CallID, UserID string
	Number              string // number of the other side
	// Direct is set if the dialled number or extension is the user's own, without a queue before.
	Direct        bool
	TransferredBy *Caller // user who transfers the call; nil if none
}

// notifyRinging calls OnRing once per dial, however many phones the user has.
func (h *forkedDial) notifyRinging(l *leg) {
	if h.c.sw.OnRing == nil || l.caller.UserID == "" || h.ringNotified || h.hideCaller {
		return
	}
	h.ringNotified = true
	number := h.from.URI.User
	if h.anonymous {
		number = call.Anonymous
	}
	h.c.sw.OnRing(Ring{Org: h.c.new.Org, CallID: h.c.id, UserID: l.caller.UserID, Number: number, Direct: h.direct, TransferredBy: h.transferredBy})
}

// sharedTargets are kinds of targets without a single user. The users rung there get the caller like for any other
// call to the target.
var sharedTargets = []string{"queue:", "flow:", "voicemail:"}

// hideCallerAt reports whether the caller is hidden from the user that a call is transferred to.
func hideCallerAt(unshown bool, to string) bool {
	return unshown && !slices.ContainsFunc(sharedTargets, func(p string) bool { return strings.HasPrefix(to, p) })
}
