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
type natKeepalives struct {
	mu  sync.Mutex // guards all
	all map[netip.AddrPort]natKeepalive
}

// natKeepalive is one NAT binding. It is kept open until the registration expires.
type natKeepalive struct {
	contact string
	until   time.Time
}

const (
	// natKeepaliveSlots is the number of groups into which the requests of one interval are split.
	natKeepaliveSlots = 10
	maxNATKeepalives  = 1 << 17
)

// RestoreNATKeepalives starts the keep-alives of phones that registered in an earlier process.
func (s *Server) RestoreNATKeepalives(all []Binding) { s.natKeepalives.replace(nil, all) }

// replace removes the entries of old bindings and adds those of new ones.
func (p *natKeepalives) replace(old, next []Binding) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range old {
		delete(p.all, b.Source)
	}
	for _, b := range next {
		if !b.behindNAT() || len(p.all) >= maxNATKeepalives {
			continue
		}
		if p.all == nil {
			p.all = map[netip.AddrPort]natKeepalive{}
		}
		p.all[b.Source] = natKeepalive{b.Contact, b.Expires}
	}
}

// behindNAT reports whether a phone registered by UDP from another address than its Contact, the sign of a router in
// between.
func (b Binding) behindNAT() bool {
	if b.Transport != UDP || len(b.Path) > 0 || !b.Source.IsValid() {
		return false
	}
	u, err := ParseURI(b.Contact)
	said, ok := literalAddr(u)
	return err != nil || !ok || said != b.Source
}

// runNATKeepalives sends keep-alives until the server closes, one group of phones at a time.
func (s *Server) runNATKeepalives() {
	if s.config.NATKeepalive <= 0 {
		return
	}
	tick := time.NewTicker(max(s.config.NATKeepalive/natKeepaliveSlots, time.Millisecond))
	defer tick.Stop()
	for slot := uint64(0); ; slot = (slot + 1) % natKeepaliveSlots {
		select {
		case <-s.done:
			return
		case <-tick.C:
		}
		for source, hole := range s.natKeepalives.dueEntries(s.config.Now(), func(a netip.AddrPort) bool { return s.slotOf(a) == slot }) {
			s.sendNATKeepalive(source, hole)
		}
	}
}

func (s *Server) slotOf(a netip.AddrPort) uint64 {
	return hashParts(s.hasher.a, []string{a.String()}) % natKeepaliveSlots
}

// dueEntries returns the entries of the current group and removes expired ones.
func (p *natKeepalives) dueEntries(now time.Time, turn func(netip.AddrPort) bool) map[netip.AddrPort]natKeepalive {
	p.mu.Lock()
	defer p.mu.Unlock()
	due := map[netip.AddrPort]natKeepalive{}
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
func (s *Server) sendNATKeepalive(source netip.AddrPort, hole natKeepalive) {
	f := flow{addr: source}
	s.send(f, s.writeOutOfDialog(&outOfDialogRequest{
		method: "OPTIONS", uri: hole.contact, callID: newCallID(), seq: 1, flow: f,
		from: "<sip:" + s.sentBy(f) + ">;tag=" + newTag(), to: "<" + hole.contact + ">",
	}, rand.Uint64()))
}
