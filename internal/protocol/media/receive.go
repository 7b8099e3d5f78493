package media

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

// inbound is the half of a stream that receives.
type inbound struct {
	mu      sync.Mutex // guards all below; held by the loop while it handles a packet
	closed  bool
	accept  bool      // the negotiated direction lets the other side send
	kindOf  [128]kind // by payload type
	latch   latch
	peer    *Stream          // relayed to
	tee     *ring            // recorder's; nil while paused
	claimed *ring            // recorder's, also while paused
	ears    *ears            // OnAudio's and OnDTMF's
	pressed func(digit rune) // OnEvent's
	mix     *ring            // a mixer's
	muted   bool             // what the leg says goes nowhere
	tones   bool             // events were not negotiated: digits come as sound

	converted bool // the peer hears the leg through a mixer, events aside
	protected bool // by SRTP: nothing else is accepted

	lastSelf int64 // when we last sent a report
	rx       reception
	quiet    quiet
	heard    meter // what the other side reports about us
	theirs   reported
	rtcpFrom netip.AddrPort // learned
	lastSR   uint32         // middle of the NTP time of the other side's last report
	lastSRAt int64

	opener *opener // nil while its key is not known yet
	ice    *iceAgent
	link   *dtlsLink

	ignored, malformed, unproved, events uint64
	eventTS                              uint32
	eventSSRC                            uint32
	eventSeq                             uint16 // its first packet's
	held                                 *held  // its key; nil where nobody is sent it while it is held down
}

func (in *inbound) init() {
	in.accept = true
	in.setKinds(staticG711) // static types need no negotiation
}

func (in *inbound) setKinds(lists ...[]Format) {
	for i := range in.kindOf {
		in.kindOf[i] = kindNone
	}
	for _, list := range lists {
		for _, f := range list {
			if f.PT < 128 && in.kindOf[f.PT] == kindNone {
				in.kindOf[f.PT] = kindOf(f)
			}
		}
	}
}

// negotiate takes the outcome of an exchange and returns the source learned so
// far, if it still holds. The other side sends the payload types we declared;
// types only it declared are understood as well, for many phones send those.
func (in *inbound) negotiate(r Remote, now int64, window time.Duration) netip.AddrPort {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.accept && !in.quiet.open {
		in.quiet.open, in.quiet.since = true, now
	}
	if len(r.Ours)+len(r.Formats) > 0 {
		in.setKinds(r.Ours, r.Formats)
		in.tones = !slices.ContainsFunc(r.Formats, Format.isEvent)
	}
	if r.ice {
		return netip.AddrPort{}
	}
	in.latch.negotiate(r, now, window)
	if !in.latch.source.IsValid() {
		in.rtcpFrom = netip.AddrPort{}
	}
	return in.latch.source
}

func (in *inbound) shut() {
	in.mu.Lock()
	in.closed, in.peer, in.tee, in.mix = true, nil, nil, nil
	in.mu.Unlock()
}

func (in *inbound) stats(st *StreamStats, e *Engine) {
	in.mu.Lock()
	defer in.mu.Unlock()
	rx := &in.rx
	st.Received, st.ReceivedBytes = rx.packets, rx.bytes
	st.Lost, st.OutOfOrder = rx.lost(), rx.outOfOrder
	st.Jitter = rx.jitterTime()
	st.Ignored, st.Malformed, st.Unproved, st.DTMF = in.ignored, in.malformed, in.unproved, in.events
	st.First, st.Last = e.wall(rx.first), e.wall(rx.last)
}

// receive handles one RTP packet on the loop's thread: nothing here allocates,
// blocks, logs, or takes a lock of another call.
func (s *Stream) receive(b []byte, from netip.AddrPort, now int64) {
	in := &s.in
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return
	}
	if len(b) < rtpHeaderLen || b[0]>>6 != 2 {
		s.receiveOther(b, from, now)
		return
	}
	if !s.admits(from, now) {
		in.ignored++
		return
	}
	report := isReport(b)
	if in.protected {
		var ok bool
		if b, ok = s.open(b, report, now); !ok {
			in.unproved++
			return
		}
	}
	if report { // RFC 5761 §4: RTCP on the RTP port
		s.receiveReport(b, now)
		return
	}
	h, begin, end, ok := parseRTP(b)
	if !ok {
		in.malformed++
		return
	}
	s.follow(from, now)
	in.quiet.end(s, now)
	in.rx.count(h, in.kindOf[h.pt], end-begin, now)
	if in.accept {
		s.deliver(h, b, begin, end, now)
	}
	s.reportIfDue(now)
}

// deliver hands an accepted packet to whoever wants it: recorder, listener, other leg.
func (s *Stream) deliver(h rtpHeader, b []byte, begin, end int, now int64) {
	in := &s.in
	k := in.kindOf[h.pt&127]
	if k == kindNone || begin == end {
		return
	}
	pressed := k.event() && s.event(h, k, b[begin:end], now)
	if in.muted || k.event() && in.stale(h) {
		return
	}
	if pressed && in.mix != nil && in.peer == nil {
		s.strike(nil, b[begin:end], k, now)
	}
	if in.tee != nil && k.audio() {
		in.tee.push(h, k, b[begin:end], now)
	}
	if in.ears != nil && k.audio() {
		in.ears.hear(h, k, b[begin:end], now, in.tones)
	}
	if in.mix != nil && k.audio() {
		in.mix.push(h, k, b[begin:end], now)
	}
	if in.peer != nil && !(in.converted && k.audio()) {
		in.peer.relay(s, h, k, b, begin, end, now)
	}
}

// event counts an RFC 4733 event once: its packets, the end repeated three
// times, share a timestamp (RFC 4733 §2.5.1.2). It reports whether it began.
func (s *Stream) event(h rtpHeader, k kind, payload []byte, now int64) bool {
	in := &s.in
	if len(payload) < 4 || in.stale(h) {
		return false
	}
	begun := in.events == 0 || in.eventTS != h.ts || in.eventSSRC != h.ssrc
	if begun {
		in.begin(h, payload[0])
	} else if in.held != nil {
		in.held.goesOn(payload, k.clock(), now)
	}
	return begun
}

// begin tells of a key that is pressed.
func (in *inbound) begin(h rtpHeader, code byte) {
	in.eventTS, in.eventSSRC, in.eventSeq = h.ts, h.ssrc, h.seq
	in.events++
	in.held = nil
	if in.pressed != nil {
		if d, ok := eventDigit(code); ok {
			in.pressed(d)
		}
	}
	if in.ears != nil {
		in.ears.press(code)
	}
}

// stale reports whether a packet is one of an event before the last, that others have overtaken.
func (in *inbound) stale(h rtpHeader) bool {
	late := int16(in.eventSeq - h.seq)
	return in.events > 0 && in.eventSSRC == h.ssrc && in.eventTS != h.ts && late > 0 && late < 50
}
