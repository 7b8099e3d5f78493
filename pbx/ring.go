package pbx

import "soniq/call"

// A Ring is a call that rings at a user of ours.
type Ring struct {
	Org, CallID, UserID string
	Number              string // of the other side
	// Way is what the call came by, where it went straight to the user; nil: it was led somewhere first, or is passed on.
	Way *call.Way
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
	r := Ring{Org: h.c.new.Org, CallID: h.c.id, UserID: l.caller.UserID, Number: number}
	if h.straight {
		r.Way = &call.Way{Direction: h.c.new.Direction, NumberID: h.c.new.NumberID}
	}
	h.c.sw.Rings(r)
}
