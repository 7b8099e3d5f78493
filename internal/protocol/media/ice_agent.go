package media

import (
	"crypto/hmac"
	"crypto/sha1" // required by RFC 8489 §14.5
	"hash"
	"net/netip"
	"time"

	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/media/stun"
)

// An iceAgent finds and keeps the path to a browser. It is a full ICE agent (RFC 8445) with one component, because
// RTP and RTCP share a port. Its only local candidate is the stream's RTP socket. It answers connectivity checks on
// the packet loop and sends its own from a goroutine that ends with the stream. The stream's in.mu guards it.
type iceAgent struct {
	s      *Stream
	params sdp.ICEParameters

	localMAC, remoteMAC hash.Hash // HMACs keyed with the local and the remote password
	usernamePrefix      []byte    // USERNAME prefix of checks addressed to us, up to and including the colon
	pairs               []*icePair
	selected            *icePair
	nominating          *icePair
	provedAddrs         [maxPeers]netip.AddrPort // ring of addresses whose messages were authenticated
	provedCount         int
	out                 stun.Writer

	ready   chan struct{} // closed when the first pair is selected or usable
	isReady bool          // ready is closed
	wake    chan struct{}
	quit    chan struct{}
	done    chan struct{}
}

// Intervals and limits of connectivity checks (RFC 8445 §14, RFC 7675 §5.1).
const (
	checkInterval     = int64(10 * time.Millisecond)
	checkFirstTimeout = int64(50 * time.Millisecond) // until the first retransmission
	checkMaxTries     = 12                           // about seven seconds
	consentInterval   = int64(5 * time.Second)
	consentTimeout    = int64(30 * time.Second)

	maxPairs = 2 * sdp.MaxCandidates
	maxPeers = 16
)

// An icePair is the pair of our socket and one remote address.
type icePair struct {
	remote   netip.AddrPort
	priority uint32 // of the remote candidate

	// State of the current check:
	tx          stun.TransactionID
	controlling bool // the role we stated in it
	nominates   bool // it carries USE-CANDIDATE
	tries       int
	nextSend    int64 // time of the next transmission; 0 is never

	valid           bool  // a check succeeded
	remoteNominated bool  // the other side nominated it
	lastResponse    int64 // time of the last successful response
	lastRequest     int64 // time of the last request from the other side
}

func newICEAgent(s *Stream, t sdp.ICEParameters) *iceAgent {
	a := &iceAgent{s: s, ready: make(chan struct{}), wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	a.start(t)
	return a
}

// start takes new parameters: the first ones, or those of an ICE restart. Media keeps its current path until a new
// pair is selected.
func (a *iceAgent) start(t sdp.ICEParameters) {
	a.params = t
	a.localMAC, a.remoteMAC = hmac.New(sha1.New, []byte(t.Password)), hmac.New(sha1.New, []byte(t.RemotePassword))
	a.usernamePrefix = []byte(t.Ufrag + ":")
	a.pairs, a.nominating, a.selected = nil, nil, nil
	now := a.s.engine.clock()
	for _, c := range t.Candidates {
		if a.find(c.Addr) == nil && a.s.canReach(c.Addr) {
			a.startCheck(a.add(c.Addr, c.Priority), now, false)
		}
	}
}

// canReach reports whether our socket can send to the address family of a.
func (s *Stream) canReach(a netip.AddrPort) bool { return s.bind.Is6() || a.Addr().Is4() }

func (a *iceAgent) find(addr netip.AddrPort) *icePair {
	for _, p := range a.pairs {
		if p.remote == addr {
			return p
		}
	}
	return nil
}

// add creates a pair. If there are too many, it replaces one that was never valid.
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

// isProved reports whether an authenticated message came from the address.
func (a *iceAgent) isProved(addr netip.AddrPort) bool {
	for _, h := range a.provedAddrs[:min(a.provedCount, maxPeers)] {
		if h == addr {
			return true
		}
	}
	return false
}

// markProved records that an authenticated message came from the address.
func (a *iceAgent) markProved(addr netip.AddrPort) {
	if !a.isProved(addr) {
		a.provedAddrs[a.provedCount%maxPeers] = addr
		a.provedCount++
	}
}

// nominate sends a check with USE-CANDIDATE for p.
func (a *iceAgent) nominate(p *icePair, now int64) {
	a.nominating = p
	a.startCheck(p, now, true)
}

// usePair sends media over p from now on. final is true if both sides agreed on the pair.
func (a *iceAgent) usePair(p *icePair, final bool) {
	if final {
		a.selected = p
	}
	a.s.out.setDestination(p.remote)
	if !a.isReady {
		a.isReady = true
		close(a.ready)
	}
}

// prefersPair reports whether the other side's nomination of p replaces the selected pair. It does if p has the
// higher priority, or if the selected pair received no check for 3 s.
func (a *iceAgent) prefersPair(p *icePair, now int64) bool {
	s := a.selected
	return s == nil || p.priority > s.priority || now-s.lastRequest > int64(3*time.Second)
}

// setDestination sends RTP and RTCP to an address. If the address is invalid, nothing is sent.
func (o *outbound) setDestination(to netip.AddrPort) {
	o.mu.Lock()
	o.to = to
	o.mu.Unlock()
}
