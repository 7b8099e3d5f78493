package pbx

import (
	"context"
	"slices"
	"sync"
	"time"

	"soniq/internal/protocol/sip"
)

// A telephone that was connected to us (TCP, TLS, WebSocket) lost its connection when the process ended. It connects again by
// itself and registers; its call goes on from there.

// comeback is how long such a telephone may take. Longer, nobody waits for somebody who is not heard.
const comeback = time.Minute

// aways are the legs whose telephones are not connected again yet, by device.
type aways struct {
	mu   sync.Mutex // guards legs
	legs map[string][]*leg
}

func (a *aways) add(l *leg) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.legs == nil {
		a.legs = map[string][]*leg{}
	}
	device := l.caller.DeviceID
	a.legs[device] = append(a.legs[device], l)
}

// of returns the legs of a device.
func (a *aways) of(device string) []*leg {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.legs[device])
}

// remove reports whether the leg was away until now.
func (a *aways) remove(l *leg) bool {
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

// Registered tells the switch where a device can be reached now: calls from before a restart whose telephone has come back go
// on. It returns at once.
func (s *Switch) Registered(device string, all []sip.Binding) {
	for _, l := range s.away.of(device) {
		for _, b := range all {
			if s.isBack(l, b) && s.away.remove(l) {
				c := l.owner.Load()
				c.inbox.push(message{run: func(context.Context) { c.cameBack(l, b) }})
			}
		}
	}
}

// isBack reports whether a registration is that of the leg's telephone: the one with the same user in its contact, which
// telephones of one account do not share.
func (s *Switch) isBack(l *leg, b sip.Binding) bool {
	was, err := sip.ParseURI(l.earlier.target)
	is, err2 := sip.ParseURI(b.Contact)
	return err == nil && err2 == nil && was.User == is.User && b.Transport == l.lost() && s.server.Reachable(b)
}

// await carries the leg on when its telephone registers, or has by now.
func (c *liveCall) await(ctx context.Context, l *leg) {
	c.sw.away.add(l)
	c.step("leg.awaited", l, nil)
	c.limit(comeback, func(context.Context) {
		if c.sw.away.remove(l) {
			c.stayedAway()
		}
	})
	all, err := c.sw.Directory.Contacts(ctx, l.caller.DeviceID)
	if err != nil {
		c.sw.Log.Error("contacts of a phone not read", "call", c.id, "org", c.new.Org, "err", err)
	}
	c.sw.Registered(l.caller.DeviceID, all)
}

func (c *liveCall) cameBack(l *leg, b sip.Binding) {
	if c.done || !l.up() {
		return
	}
	c.step("leg.back", l, detail{"transport": string(b.Transport)})
	l.sip.Rebind(b)
	l.whenIdle(func() { c.anchor(l) })
}
