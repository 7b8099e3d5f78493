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
	Straight bool
	By       *Caller // user who transfers the call; nil if none
}

// notifyRinging calls OnRing once per dial, however many phones the user has.
func (h *hunt) tellRings(l *leg) {
	if h.c.sw.Rings == nil || l.caller.UserID == "" || h.told || h.unshown {
		return
	}
	h.told = true
	number := h.from.URI.User
	if h.anonymous {
		number = call.Anonymous
	}
	h.c.sw.Rings(Ring{Org: h.c.new.Org, CallID: h.c.id, UserID: l.caller.UserID, Number: number, Straight: h.straight, By: h.by})
}

// sharedTargets are kinds of targets without a single user. The users rung there get the caller like for any other
// call to the target.
var toNobody = []string{"queue:", "flow:", "voicemail:"}

// hideCallerAt reports whether the caller is hidden from the user that a call is transferred to.
func unshownAt(unshown bool, to string) bool {
	return unshown && !slices.ContainsFunc(toNobody, func(p string) bool { return strings.HasPrefix(to, p) })
}
