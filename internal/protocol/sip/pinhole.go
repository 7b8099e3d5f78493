package sip

import (
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"
)

// pinholes are the ways to phones that registered by UDP through a router that hides them. Routers forget who is quiet, many
// after 30 s (RFC 4787 §4.3), and then no call gets in; so each phone is asked something now and then. Its answer, whatever it
// is, keeps the way open also where only what comes from inside counts.
type pinholes struct {
	mu  sync.Mutex // guards all
	all map[netip.AddrPort]pinhole
}

// A pinhole is kept open until the registration ends.
type pinhole struct {
	contact string
	until   time.Time
}

const (
	// pinholeSlots is in how many parts an interval's requests are sent.
	pinholeSlots = 10
	maxPinholes  = 1 << 17
)

// KeepOpen keeps the ways to phones open that registered in an earlier run.
func (s *Server) KeepOpen(all []Binding) { s.pinholes.replace(nil, all) }

// replace forgets the ways of old bindings and keeps those of new ones.
func (p *pinholes) replace(old, next []Binding) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range old {
		delete(p.all, b.Source)
	}
	for _, b := range next {
		if !b.hidden() || len(p.all) >= maxPinholes {
			continue
		}
		if p.all == nil {
			p.all = map[netip.AddrPort]pinhole{}
		}
		p.all[b.Source] = pinhole{b.Contact, b.Expires}
	}
}

// hidden reports whether a phone came by UDP from elsewhere than it says to be: the sign of a router in between.
func (b Binding) hidden() bool {
	if b.Transport != UDP || len(b.Path) > 0 || !b.Source.IsValid() {
		return false
	}
	u, err := ParseURI(b.Contact)
	said, ok := literal(u)
	return err != nil || !ok || said != b.Source
}

// keepPinholes asks the phones until the server ends, a part of them at a time.
func (s *Server) keepPinholes() {
	if s.config.KeepAlive <= 0 {
		return
	}
	tick := time.NewTicker(max(s.config.KeepAlive/pinholeSlots, time.Millisecond))
	defer tick.Stop()
	for slot := uint64(0); ; slot = (slot + 1) % pinholeSlots {
		select {
		case <-s.done:
			return
		case <-tick.C:
		}
		for source, hole := range s.pinholes.due(s.config.Now(), func(a netip.AddrPort) bool { return s.slotOf(a) == slot }) {
			s.keepPinhole(source, hole)
		}
	}
}

func (s *Server) slotOf(a netip.AddrPort) uint64 {
	return hashParts(s.keys.a, []string{a.String()}) % pinholeSlots
}

// due are the ways whose turn it is; those whose time is over are forgotten.
func (p *pinholes) due(now time.Time, turn func(netip.AddrPort) bool) map[netip.AddrPort]pinhole {
	p.mu.Lock()
	defer p.mu.Unlock()
	due := map[netip.AddrPort]pinhole{}
	for source, hole := range p.all {
		switch {
		case !hole.until.After(now):
			delete(p.all, source)
		case turn(source):
			due[source] = hole
		}
	}
	return due
}

// keepPinhole asks once, by OPTIONS without a transaction: it is not repeated, and the answer is dropped.
func (s *Server) keepPinhole(source netip.AddrPort, hole pinhole) {
	f := flow{addr: source}
	s.send(f, s.writeErrand(&errand{
		method: "OPTIONS", uri: hole.contact, callID: newCallID(), seq: 1, flow: f,
		from: "<sip:" + s.sentBy(f) + ">;tag=" + newTag(), to: "<" + hole.contact + ">",
	}, rand.Uint64()))
}
