package sip

import (
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"
)

// NAT keep-alives: OPTIONS to phones behind NAT that registered by UDP.

// natKeepalives holds the NAT bindings of phones that registered by UDP from behind a router. Routers drop idle
// bindings, many after 30 s (RFC 4787 §4.3), and then no call reaches the phone. So each phone regularly gets an
// OPTIONS request. Its response, whatever the status, also keeps bindings open that only outgoing packets refresh.
type pinholes struct {
	mu  sync.Mutex // guards all
	all map[netip.AddrPort]pinhole
}

// natKeepalive is one NAT binding. It is kept open until the registration expires.
type pinhole struct {
	contact string
	until   time.Time
}

const (
	// natKeepaliveSlots is the number of groups into which the requests of one interval are split.
	pinholeSlots = 10
	maxPinholes  = 1 << 17
)

// RestoreNATKeepalives starts the keep-alives of phones that registered in an earlier process.
func (s *Server) KeepOpen(all []Binding) { s.pinholes.replace(nil, all) }

// replace removes the entries of old bindings and adds those of new ones.
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

// behindNAT reports whether a phone registered by UDP from another address than its Contact, the sign of a router in
// between.
func (b Binding) hidden() bool {
	if b.Transport != UDP || len(b.Path) > 0 || !b.Source.IsValid() {
		return false
	}
	u, err := ParseURI(b.Contact)
	said, ok := literal(u)
	return err != nil || !ok || said != b.Source
}

// runNATKeepalives sends keep-alives until the server closes, one group of phones at a time.
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

// dueEntries returns the entries of the current group and removes expired ones.
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

// sendNATKeepalive sends one OPTIONS without a transaction: it is not retransmitted, and the response is dropped.
func (s *Server) keepPinhole(source netip.AddrPort, hole pinhole) {
	f := flow{addr: source}
	s.send(f, s.writeErrand(&errand{
		method: "OPTIONS", uri: hole.contact, callID: newCallID(), seq: 1, flow: f,
		from: "<sip:" + s.sentBy(f) + ">;tag=" + newTag(), to: "<" + hole.contact + ">",
	}, rand.Uint64()))
}
