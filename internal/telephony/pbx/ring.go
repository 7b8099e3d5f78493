package pbx

import (
	"slices"
	"strings"

	"soniq/internal/telephony/call"
)

// A Ring is a call that rings at a user of ours.
type Ring struct {
	Org, CallID, UserID string
	Number              string // of the other side
	// Straight says that the number, or the extension, that was called is the user's own: no queue has led the call there.
	Straight bool
	By       *Caller // the user who hands the call over; nil where nobody does
}

// tellRings tells once, however many phones the user has, that the call rings at them.
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

// toNobody are the kinds of places that are no single user: who is rung there is found, and told, as for any call that is led there.
var toNobody = []string{"queue:", "flow:", "voicemail:"}

// unshownAt reports whether a user a call is handed over to is not to be told whose it is.
func unshownAt(unshown bool, to string) bool {
	return unshown && !slices.ContainsFunc(toNobody, func(p string) bool { return strings.HasPrefix(to, p) })
}
