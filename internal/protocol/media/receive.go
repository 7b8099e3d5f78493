package media

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

// inbound is the receiving half of a stream.
type inbound struct {
	mu      sync.Mutex // guards the fields below; held by the loop while it handles a packet
	closed  bool
	accept  bool      // the negotiated direction permits the other side to send
	kindOf  [128]kind // by payload type
	latch   latch
	peer    *Stream          // bridge peer
	tee     *ring            // of the recorder; nil while paused
	claimed *ring            // of the recorder, also while paused
	ears    *ears            // OnAudio and OnDTMF
	pressed func(digit rune) // OnEvent
	mix     *ring            // of a mixer
	muted   bool             // audio of the leg is discarded
	tones   bool             // events were not negotiated: digits arrive as tones

	converted bool // the peer receives the audio through a transcoding mixer; events are relayed
	protected bool // by SRTP: other packets are refused

	lastSelf int64 // time of our last report
	rx       reception
	quiet    quiet
	heard    meter // quality that the other side reports
	theirs   reported
	rtcpFrom netip.AddrPort // learned source of its RTCP
	lastSR   uint32         // middle 32 bits of the NTP time of the other side's last report
	lastSRAt int64

	opener *opener // nil until its key is known
	ice    *iceAgent
	link   *dtlsLink

	ignored, malformed, unproved, events uint64
	eventTS                              uint32
	eventSSRC                            uint32
	eventSeq                             uint16 // sequence number of its first packet
	held                                 *held  // the current digit; nil if it is sent to no other leg while it is held down
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

// negotiate applies the result of an offer/answer exchange. It returns the learned source if that is still valid. The
// other side sends the payload types that we declared. Types that only it declared are accepted as well, because many
// phones send those.
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

// receive handles one RTP packet on the loop's thread. It does not allocate, block, log, or take a lock of another
// call.
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

// deliver passes an accepted packet to the recorder, the decoded receiver, the mixer and the bridge peer.
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

// countEvent counts an RFC 4733 event once. Its packets, including the end that is sent three times, share a
// timestamp (RFC 4733 §2.5.1.2). It reports whether the event is new.
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

// startEvent reports a new digit to OnEvent and OnDTMF.
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

// isStaleEvent reports whether a packet belongs to an earlier event and was overtaken by packets of the current one.
func (in *inbound) stale(h rtpHeader) bool {
	late := int16(in.eventSeq - h.seq)
	return in.events > 0 && in.eventSSRC == h.ssrc && in.eventTS != h.ts && late > 0 && late < 50
}
