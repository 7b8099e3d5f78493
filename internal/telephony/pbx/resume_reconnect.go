package pbx

import (
	"context"
	"slices"
	"sync"
	"time"

	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
)

// Reconnection of phones after a restart. A phone with a connection to us (TCP, TLS, WebSocket) lost it when the
// process ended. It connects and registers again by itself, and its call continues then.

// reconnectTimeout is the time that such a phone has to register again. After it the call ends, because the other
// party hears nothing.
const reconnectTimeout = time.Minute

// disconnectedLegs holds the legs of phones that have not registered again yet, by device.
type disconnectedLegs struct {
	mu   sync.Mutex // guards legs
	legs map[string][]*leg
}

func (a *disconnectedLegs) add(l *leg) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.legs == nil {
		a.legs = map[string][]*leg{}
	}
	device := l.caller.DeviceID
	a.legs[device] = append(a.legs[device], l)
}

// forDevice returns the legs of a device.
func (a *disconnectedLegs) forDevice(device string) []*leg {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.legs[device])
}

// remove removes a leg and reports whether it was still disconnected.
func (a *disconnectedLegs) remove(l *leg) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	device := l.caller.DeviceID
	i := slices.Index(a.legs[device], l)
	if i < 0 {
		return false
	}
	if a.legs[device] = slices.Delete(a.legs[device], i, i+1); len(a.legs[device]) == 0 {
		delete(a.legs, device)
	}
	return true
}

// Registered passes the current bindings of a device to the switch. Calls from before a restart continue if their
// phone has registered again. It does not block.
func (s *Switch) Registered(device string, all []sip.Binding) {
	for _, l := range s.disconnected.forDevice(device) {
		for _, b := range all {
			if s.isReconnect(l, b) && s.disconnected.remove(l) {
				c := l.owner.Load()
				c.inbox.Push(message{run: func(context.Context) { c.reconnected(l, b) }})
			}
		}
	}
}

// isReconnect reports whether a binding belongs to the leg's phone: same user part of the contact, which phones of
// one account do not share, same transport, and reachable.
func (s *Switch) isReconnect(l *leg, b sip.Binding) bool {
	was, err := sipmsg.ParseURI(l.restarted.target)
	is, err2 := sipmsg.ParseURI(b.Contact)
	return err == nil && err2 == nil && was.User == is.User && b.Transport == l.lostTransport() && s.server.Reachable(b)
}

// awaitReconnect continues the leg when its phone registers, or at once if it already has.
func (c *liveCall) awaitReconnect(ctx context.Context, l *leg) {
	c.sw.disconnected.add(l)
	c.addEntry("leg.reconnect_awaited", l, nil)
	c.afterWhileActive(reconnectTimeout, func(context.Context) {
		if c.sw.disconnected.remove(l) {
			c.endNotResumed()
		}
	})
	all, err := c.sw.cfg.Routes.Contacts(ctx, l.caller.DeviceID)
	if err != nil {
		c.sw.cfg.Log.Error("contacts of a phone not read", "call", c.id, "org", c.new.Org, "err", err)
	}
	c.sw.Registered(l.caller.DeviceID, all)
}

func (c *liveCall) reconnected(l *leg, b sip.Binding) {
	if c.done || !l.up() {
		return
	}
	c.addEntry("leg.reconnected", l, detail{"transport": string(b.Transport)})
	l.sip.Rebind(b)
	l.whenNoOfferPending(func() { c.reofferLeg(l) })
}
