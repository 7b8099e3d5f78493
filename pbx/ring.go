package pbx

import "soniq/call"

// A Ring is a call that rings at a user of ours.
type Ring struct {
	Org, CallID, UserID string
	Number              string // of the other side
	// Straight says that the number, or the extension, that was called is the user's own: no queue has led the call there.
	Straight bool
}

// tellRings tells once, however many phones the user has, that the call rings at them.
func (h *hunt) tellRings(l *leg) {
	if h.c.sw.Rings == nil || l.caller.UserID == "" || h.told {
		return
	}
	h.told = true
	number := h.from.URI.User
	if h.anonymous {
		number = call.Anonymous
	}
	h.c.sw.Rings(Ring{Org: h.c.new.Org, CallID: h.c.id, UserID: l.caller.UserID, Number: number, Straight: h.straight})
}
