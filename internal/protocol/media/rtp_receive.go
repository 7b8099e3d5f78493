package media

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"soniq/internal/protocol/media/dtmf"
	"soniq/internal/protocol/media/rtp"
	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/media/srtp"
)

// inbound is the receiving half of a stream.
type inbound struct {
	mu          sync.Mutex // guards the fields below; held by the loop while it handles a packet
	closed      bool
	accept      bool          // the negotiated direction permits the other side to send
	kinds       [128]rtp.Kind // by payload type
	latch       latch
	peer        *Stream          // bridge peer
	recordRing  *rtp.Ring        // of the recorder; nil while paused
	recordClaim *rtp.Ring        // of the recorder, also while paused
	decoded     *decodedReceiver // OnAudio and OnDTMF
	onEvent     func(digit rune) // OnEvent
	mixRing     *rtp.Ring        // of a mixer
	muted       bool             // audio of the leg is discarded
	noEvents    bool             // events were not negotiated: digits arrive as tones

	transcoded bool // the peer receives the audio through a transcoding mixer; events are relayed
	protected  bool // by SRTP: other packets are refused

	lastReport  int64 // time of our last report
	rx          reception
	silence     silenceDetector
	peerMeter   qualityMeter // quality that the other side reports
	peerReports peerReports
	rtcpFrom    netip.AddrPort // learned source of its RTCP
	lastSR      uint32         // middle 32 bits of the NTP time of the other side's last report
	lastSRAt    int64

	decryptor *srtp.Decryptor // nil until its key is known
	ice       *iceAgent
	dtls      *dtlsAssociation

	ignored, malformed, unauthenticated, events uint64
	key                                         rtp.HeldKey // the last digit
	eventSeq                                    uint16      // sequence number of the first packet of its current segment
	liveDTMF                                    *liveDTMF   // the current digit; nil if it is sent to no other leg while it is held down
}

func (in *inbound) init() {
	in.accept = true
	in.setKinds(sdp.StaticG711) // static types need no negotiation
}

func (in *inbound) setKinds(lists ...[]sdp.Format) {
	for i := range in.kinds {
		in.kinds[i] = rtp.KindNone
	}
	for _, list := range lists {
		for _, f := range list {
			if f.PT < 128 && in.kinds[f.PT] == rtp.KindNone {
				in.kinds[f.PT] = rtp.KindOf(f)
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
	if in.accept && !in.silence.expected {
		in.silence.expected, in.silence.lastPacket = true, now
	}
	if len(r.Ours)+len(r.Formats) > 0 {
		in.setKinds(r.Ours, r.Formats)
		in.noEvents = !slices.ContainsFunc(r.Formats, sdp.Format.IsEvent)
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

func (in *inbound) close() {
	in.mu.Lock()
	in.closed, in.peer, in.recordRing, in.mixRing = true, nil, nil, nil
	in.mu.Unlock()
}

func (in *inbound) stats(st *StreamStats, e *Engine) {
	in.mu.Lock()
	defer in.mu.Unlock()
	rx := &in.rx
	st.Received, st.ReceivedBytes = rx.packets, rx.bytes
	st.Lost, st.OutOfOrder = rx.lost(), rx.outOfOrder
	st.Jitter = rx.jitterTime()
	st.Ignored, st.Malformed, st.Unauthenticated, st.DTMF = in.ignored, in.malformed, in.unauthenticated, in.events
	st.First, st.Last = e.wallTime(rx.first), e.wallTime(rx.last)
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
	if len(b) < rtp.HeaderLen || b[0]>>6 != 2 {
		s.receiveNonRTP(b, from, now)
		return
	}
	if !s.admitsSource(from, now) {
		in.ignored++
		return
	}
	report := isReport(b)
	if in.protected {
		var ok bool
		if b, ok = s.decrypt(b, report, now); !ok {
			in.unauthenticated++
			return
		}
	}
	if report { // RFC 5761 §4: RTCP on the RTP port
		s.receiveReport(b, now)
		return
	}
	h, begin, end, ok := rtp.Parse(b)
	if !ok {
		in.malformed++
		return
	}
	s.followSource(from, now)
	in.silence.packetAccepted(s, now)
	in.rx.addPacket(h, in.kinds[h.PT], end-begin, now)
	if in.accept {
		s.deliver(h, b, begin, end, now)
	}
	s.reportIfDue(now)
}

// deliver passes an accepted packet to the recorder, the decoded receiver, the mixer and the bridge peer.
func (s *Stream) deliver(h rtp.Header, b []byte, begin, end int, now int64) {
	in := &s.in
	k := in.kinds[h.PT&127]
	if k == rtp.KindNone || begin == end {
		return
	}
	pressed := k.IsEvent() && s.countEvent(h, k, b[begin:end], now)
	if in.muted || k.IsEvent() && in.isStaleEvent(h) {
		return
	}
	if pressed && in.mixRing != nil && in.peer == nil {
		s.requestDTMF(nil, b[begin:end], k, now)
	}
	if in.recordRing != nil && k.IsAudio() {
		in.recordRing.Push(h, k, b[begin:end], now)
	}
	if in.decoded != nil && k.IsAudio() {
		in.decoded.push(h, k, b[begin:end], now, in.noEvents)
	}
	if in.mixRing != nil && k.IsAudio() {
		in.mixRing.Push(h, k, b[begin:end], now)
	}
	if in.peer != nil && !(in.transcoded && k.IsAudio()) {
		in.peer.relay(s, h, k, b, begin, end, now)
	}
}

// countEvent counts an RFC 4733 event once, whatever the number of its packets and segments. It reports whether the event is
// new.
func (s *Stream) countEvent(h rtp.Header, k rtp.Kind, payload []byte, now int64) bool {
	in := &s.in
	if len(payload) < 4 || in.isStaleEvent(h) {
		return false
	}
	segment := in.key.TS
	begun := in.key.Follow(h, payload)
	if begun || segment != in.key.TS {
		in.eventSeq = h.Seq
	}
	if begun {
		in.startEvent(payload[0])
	} else if in.liveDTMF != nil {
		in.liveDTMF.update(payload, in.key.Before, k.Clock(), now)
	}
	return begun
}

// startEvent reports a new digit to OnEvent and OnDTMF.
func (in *inbound) startEvent(code byte) {
	in.events++
	in.liveDTMF = nil
	if in.onEvent != nil {
		if d, ok := dtmf.Digit(code); ok {
			in.onEvent(d)
		}
	}
	if in.decoded != nil {
		in.decoded.pushDigit(code)
	}
}

// isStaleEvent reports whether a packet belongs to an earlier event or segment and was overtaken by packets of the current one.
func (in *inbound) isStaleEvent(h rtp.Header) bool {
	late := int16(in.eventSeq - h.Seq)
	return in.key.Known() && in.key.SSRC == h.SSRC && in.key.TS != h.TS && late > 0 && late < 50
}
