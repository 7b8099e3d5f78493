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

// byDevice holds what waits for phones to register again, by device. The zero value is ready for use. It is safe for concurrent use.
type byDevice[T comparable] struct {
	mu  sync.Mutex // guards all
	all map[string][]T
}

func (a *byDevice[T]) add(device string, x T) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all == nil {
		a.all = map[string][]T{}
	}
	a.all[device] = append(a.all[device], x)
}

// of returns what waits for a device.
func (a *byDevice[T]) of(device string) []T {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.all[device])
}

// remove removes x and reports whether it was still waiting.
func (a *byDevice[T]) remove(device string, x T) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.Index(a.all[device], x)
	if i < 0 {
		return false
	}
	if a.all[device] = slices.Delete(a.all[device], i, i+1); len(a.all[device]) == 0 {
		delete(a.all, device)
	}
	return true
}

// Registered passes the current bindings of a device to the switch. Calls from before a restart continue if their
// phone has registered again. Phones that rang when their connection was closed ring again. It does not block.
func (s *Switch) Registered(device string, all []sip.Binding) {
	s.ringReconnected(device, all)
	for _, l := range s.disconnected.of(device) {
		for _, b := range all {
			if s.isReconnect(l, b) && s.disconnected.remove(device, l) {
				c := l.owner.Load()
				c.inbox.Push(message{run: func(context.Context) { c.reconnected(l, b) }})
			}
		}
	}
}

// isReconnect reports whether a binding belongs to the leg's phone: same user part of the contact, which phones of
// one account do not share, same transport, and reachable.
func (s *Switch) isReconnect(l *leg, b sip.Binding) bool {
	return sameUserPart(l.restarted.target, b.Contact) && b.Transport == l.lostTransport() && s.server.Reachable(b)
}

// sameUserPart reports whether two URIs have the same user part. URIs that cannot be parsed have none.
func sameUserPart(a, b string) bool {
	x, err := sipmsg.ParseURI(a)
	y, err2 := sipmsg.ParseURI(b)
	return err == nil && err2 == nil && x.User == y.User
}

// awaitReconnect continues the leg when its phone registers, or at once if it already has.
func (c *liveCall) awaitReconnect(ctx context.Context, l *leg) {
	c.sw.disconnected.add(l.caller.DeviceID, l)
	c.addEntry("leg.reconnect_awaited", l, nil)
	c.afterWhileActive(reconnectTimeout, func(context.Context) {
		if c.sw.disconnected.remove(l.caller.DeviceID, l) {
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

// Reconnection of phones that ring. A phone that loses its connection (TCP, TLS, WebSocket) cannot answer its INVITE any more. It rings
// anew when it has registered again.

// ringReconnectTimeout is the time that such a phone has to register again. A browser needs one to eight seconds.
const ringReconnectTimeout = 15 * time.Second

// statusFlowFailed is the status of an INVITE whose connection was closed (430 Flow Failed, RFC 5626 §5.3.1).
const statusFlowFailed = 430

// lostPhone is a phone that rang when its connection was closed.
type lostPhone struct {
	c      *liveCall
	dial   *forkedDial
	phone  *Phone
	invite *sip.LostInvite // may be nil
	ending bool            // the former ringing is being ended
}

// awaitLost waits for the phone of a leg whose connection was closed. The phone may have registered again already.
func (h *forkedDial) awaitLost(l *leg, e sip.Failed) {
	c := h.c
	p := &lostPhone{c: c, dial: h, phone: l.phone, invite: e.Lost}
	h.lost = append(h.lost, p)
	c.sw.lostPhones.add(l.phone.DeviceID, p)
	c.addEntry("leg.reconnect_awaited", l, nil)
	c.afterWhileActive(ringReconnectTimeout, func(ctx context.Context) {
		if p.take() {
			c.sw.cancelWhenRegistered(p)
			h.keepBestFailure(e)
			h.failIfNoneLeft(ctx)
		}
	})
	c.runAsync(contactsTimeout, func(ctx context.Context) func(context.Context) {
		all, err := c.sw.cfg.Routes.Contacts(ctx, p.phone.DeviceID)
		if err != nil {
			c.sw.cfg.Log.Error("contacts of a phone not read", "call", c.id, "err", err)
		}
		c.sw.ringReconnected(p.phone.DeviceID, all)
		return nil
	})
}

// contactsTimeout limits the time to read the contacts of a phone.
const contactsTimeout = 5 * time.Second

// take removes a phone from its dial and reports whether the dial still waited for it. It runs in the goroutine of the
// phone's call. The dial may belong to another call by now, but not if it still waits.
func (p *lostPhone) take() bool {
	if !p.c.sw.lostPhones.remove(p.phone.DeviceID, p) {
		return false
	}
	p.dial.lost = without(p.dial.lost, p)
	return true
}

// forgetLost ends the wait for lost phones.
func (h *forkedDial) forgetLost() {
	for _, p := range h.lost {
		p.c.sw.lostPhones.remove(p.phone.DeviceID, p)
		p.c.sw.cancelWhenRegistered(p)
	}
	h.lost = nil
}

// ringReconnected rings lost phones of a device that have registered again, or ends their former ringing.
func (s *Switch) ringReconnected(device string, all []sip.Binding) {
	for _, p := range s.lostPhones.of(device) {
		if b, ok := s.newBinding(p, all); ok {
			p.c.inbox.Push(message{run: func(context.Context) { p.ringAgain(b) }})
		}
	}
	for _, p := range s.formerRinging.of(device) {
		if b, ok := s.newBinding(p, all); ok && s.formerRinging.remove(device, p) {
			p.invite.Cancel(b, "", func() {})
		}
	}
}

// newBinding returns the new registration of a lost phone.
func (s *Switch) newBinding(p *lostPhone, all []sip.Binding) (sip.Binding, bool) {
	i := slices.IndexFunc(all, func(b sip.Binding) bool {
		return sameUserPart(p.phone.Binding.Contact, b.Contact) && b.Transport == p.phone.Binding.Transport && s.server.Reachable(b)
	})
	if i < 0 {
		return sip.Binding{}, false
	}
	return all[i], true
}

// formerRingingTime is how long a phone may ring for an INVITE that is over.
const formerRingingTime = time.Minute

// cancelWhenRegistered cancels the INVITE of a phone as soon as it has registered again. The phone would ring on, and be
// busy for other calls. It does nothing if there is no such INVITE.
func (s *Switch) cancelWhenRegistered(p *lostPhone) {
	if p.invite == nil {
		return
	}
	s.formerRinging.add(p.phone.DeviceID, p)
	time.AfterFunc(formerRingingTime, func() { s.formerRinging.remove(p.phone.DeviceID, p) })
}

// endRingingTimeout limits the wait for the end of the former ringing.
const endRingingTimeout = time.Second

// ringAgain rings the phone at its new registration. A desk phone may ring on for the former INVITE, and would be busy:
// that one is canceled first.
func (p *lostPhone) ringAgain(b sip.Binding) {
	if p.c.done || p.ending {
		return
	}
	p.ending = true
	ring := func(ctx context.Context) {
		if !p.c.done && p.take() {
			p.dial.ringPhone(ctx, &Phone{DeviceID: p.phone.DeviceID, SRTP: p.phone.SRTP, Binding: b})
		}
	}
	if p.invite != nil {
		p.invite.Cancel(b, sip.CompletedElsewhere, func() { p.c.inbox.Push(message{run: ring}) })
	}
	p.c.afterWhileActive(endRingingTimeout, ring)
}
