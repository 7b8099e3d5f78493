package media

import (
	"crypto/hmac"
	"crypto/sha1" // RFC 8489 §14.5 says so
	"hash"
	"net/netip"
	"time"
)

// An iceAgent finds and keeps the way to a browser: full ICE (RFC 8445) with one
// component, for RTP and RTCP share a port, and one candidate of ours, the
// stream's RTP socket. It answers checks on the packet loop and sends its own
// from a goroutine that ends with the stream. The stream's in.mu guards it.
type iceAgent struct {
	s     *Stream
	terms iceTerms

	ours, theirs hash.Hash // by the passwords of both sides
	name         []byte    // what checks for us are addressed to, up to and with the colon
	pairs        []*icePair
	selected     *icePair
	nominating   *icePair
	heard        [maxPeers]netip.AddrPort // who has proved to be the other side; a ring
	heards       int
	out          stunWriter

	ready chan struct{} // closed when the first pair is selected or usable
	open  bool          // ready is closed
	wake  chan struct{}
	quit  chan struct{}
	done  chan struct{}
}

// Times of checks (RFC 8445 §14, RFC 7675 §5.1).
const (
	checkPace   = int64(10 * time.Millisecond)
	checkFirst  = int64(50 * time.Millisecond) // until the first repetition
	checkTries  = 12                           // about seven seconds
	consentTime = int64(5 * time.Second)
	consentEnd  = int64(30 * time.Second)

	maxPairs = 2 * maxCandidates
	maxPeers = 16
)

// An icePair is our socket and an address of the other side.
type icePair struct {
	remote   netip.AddrPort
	priority uint32 // of their candidate

	// of the check under way
	tx          stunTx
	controlling bool // as we said in it
	use         bool // it nominates
	tries       int
	due         int64 // when it is sent next; 0 is never

	valid     bool  // a check came back
	asked     bool  // the other side nominated it
	confirmed int64 // when a check came back last
	heard     int64 // when the other side's check was seen last
}

func newICEAgent(s *Stream, t iceTerms) *iceAgent {
	a := &iceAgent{s: s, ready: make(chan struct{}), wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	a.begin(t)
	return a
}

// begin takes new terms, the first or those of a restart. What was selected
// carries the call until something new is.
func (a *iceAgent) begin(t iceTerms) {
	a.terms = t
	a.ours, a.theirs = hmac.New(sha1.New, []byte(t.pwd)), hmac.New(sha1.New, []byte(t.theirPwd))
	a.name = []byte(t.ufrag + ":")
	a.pairs, a.nominating, a.selected = nil, nil, nil
	now := a.s.engine.clock()
	for _, c := range t.candidates {
		if a.find(c.addr) == nil && a.s.reaches(c.addr) {
			a.check(a.add(c.addr, c.priority), now, false)
		}
	}
}

// reaches reports whether our socket can send there at all.
func (s *Stream) reaches(a netip.AddrPort) bool { return s.bind.Is6() || a.Addr().Is4() }

func (a *iceAgent) find(addr netip.AddrPort) *icePair {
	for _, p := range a.pairs {
		if p.remote == addr {
			return p
		}
	}
	return nil
}

// add makes a pair. When there are too many, one that never worked goes.
func (a *iceAgent) add(addr netip.AddrPort, priority uint32) *icePair {
	p := &icePair{remote: addr, priority: priority}
	if len(a.pairs) < maxPairs {
		a.pairs = append(a.pairs, p)
		return p
	}
	for i, old := range a.pairs {
		if old != a.selected && old != a.nominating && !old.valid {
			a.pairs[i] = p
			return p
		}
	}
	return p
}

// knows reports whether the address has proved to be the other side's.
func (a *iceAgent) knows(addr netip.AddrPort) bool {
	for _, h := range a.heard[:min(a.heards, maxPeers)] {
		if h == addr {
			return true
		}
	}
	return false
}

// proved notes that a message of the other side's came from there.
func (a *iceAgent) proved(addr netip.AddrPort) {
	if !a.knows(addr) {
		a.heard[a.heards%maxPeers] = addr
		a.heards++
	}
}

// nominate makes p the pair to use, and tells the other side so.
func (a *iceAgent) nominate(p *icePair, now int64) {
	a.nominating = p
	a.check(p, now, true)
}

// use sends over p from now on. final says that both sides agree on it.
func (a *iceAgent) use(p *icePair, final bool) {
	if final {
		a.selected = p
	}
	a.s.out.route(p.remote)
	if !a.open {
		a.open = true
		close(a.ready)
	}
}

// prefers reports whether the other side's nomination of p replaces what is
// selected: by priority, or because the old way has gone quiet.
func (a *iceAgent) prefers(p *icePair, now int64) bool {
	s := a.selected
	return s == nil || p.priority > s.priority || now-s.heard > int64(3*time.Second)
}

// route sends everything to an address, and nothing when it is not valid.
func (o *outbound) route(to netip.AddrPort) {
	o.mu.Lock()
	o.to = to
	o.mu.Unlock()
}
