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
	mu  sync.Mutex               // guards all
	all map[natBinding]time.Time // until when they are kept open: the end of the registration
}

// natBinding is one registration from behind NAT. Several accounts of one phone may have the same source.
type natBinding struct {
	source  netip.AddrPort
	contact string
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
		delete(p.all, natBinding{b.Source, b.Contact})
	}
	for _, b := range next {
		if !b.behindNAT() || len(p.all) >= maxNATKeepalives {
			continue
		}
		if p.all == nil {
			p.all = map[natBinding]time.Time{}
		}
		p.all[natBinding{b.Source, b.Contact}] = b.Expires
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
		for source, contact := range s.natKeepalives.dueEntries(s.config.Now(), func(a netip.AddrPort) bool { return s.slotOf(a) == slot }) {
			s.sendNATKeepalive(source, contact)
		}
	}
}

func (s *Server) slotOf(a netip.AddrPort) uint64 {
	return hashParts(s.hasher.a, []string{a.String()}) % natKeepaliveSlots
}

// dueEntries returns the sources of the current group, each with one contact, and removes expired entries.
func (p *natKeepalives) dueEntries(now time.Time, turn func(netip.AddrPort) bool) map[netip.AddrPort]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	due := map[netip.AddrPort]string{}
	for b, until := range p.all {
		switch {
		case !until.After(now):
			delete(p.all, b)
		case turn(b.source):
			due[b.source] = b.contact
		}
	}
	return due
}

// sendNATKeepalive sends one OPTIONS without a transaction: it is not retransmitted, and the response is dropped.
func (s *Server) sendNATKeepalive(source netip.AddrPort, contact string) {
	f := flow{addr: source}
	s.send(f, s.writeOutOfDialog(&outOfDialogRequest{
		method: "OPTIONS", uri: contact, callID: newCallID(), seq: 1, flow: f,
		from: "<sip:" + s.sentBy(f) + ">;tag=" + newTag(), to: "<" + contact + ">",
	}, rand.Uint64()))
}
