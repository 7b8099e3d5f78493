package media

import (
	"math/rand/v2"
	"net/netip"
	"sync"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/rtp"
	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/media/srtp"
)

// outbound is the sending half of a stream. Whatever the source of its packets, the other side sees one source: our
// SSRC, consecutive sequence numbers and a continuous timeline.
type outbound struct {
	mu        sync.Mutex // guards the fields below
	closed    bool
	enabled   bool // the negotiated direction permits us to send
	muted     bool // our player is sending: relayed and mixed audio is suppressed
	started   bool
	mux       bool // RTCP is sent to the RTP port (RFC 5761)
	mapped    bool // the packets of source are mapped
	protected bool // by SRTP: nothing else is sent
	to        netip.AddrPort
	rtcpTo    netip.AddrPort
	pts       [rtp.KindCount]uint8 // payload type by kind; noPT if the other side has none
	codec     codec.Codec          // the other side's most preferred codec of those that can be encoded here

	sentAt    int64  // time when ts was sent
	relayedAt int64  // time of the last relayed or mixed packet
	ts        uint32 // highest sent
	ssrc      uint32
	clock     uint32 // of the last packet, Hz
	seq       uint16 // highest sent

	source     *Stream       // whose packets are mapped; nil is our own audio
	event      *relayedEvent // the last digit that was relayed; allocated with the first one because of the size of a stream
	digitUntil int64         // until then a relayed digit suppresses our own audio

	sent *sentNumbers // never nil; allocated apart because of the size of a stream

	encryptor *srtp.Encryptor // nil until its key is known

	packets, bytes uint64
	report         [96]byte // buffer for RTCP
}

const noPT = 0xFF

func (o *outbound) init() {
	o.enabled, o.clock, o.relayedAt = true, 8000, -1e9
	o.ssrc, o.seq, o.ts = rand.Uint32(), uint16(rand.Uint32())&0x7FFF, rand.Uint32() // RFC 3550 §5.1: random starts
	o.sent = &sentNumbers{}
	o.setTypes(sdp.StaticG711)
}

func (o *outbound) setTypes(list []sdp.Format) {
	for k := range o.pts {
		o.pts[k] = noPT
	}
	audio := false
	for i := len(list) - 1; i >= 0; i-- { // backwards: the first of a kind wins
		k := rtp.KindOf(list[i])
		if k == rtp.KindNone {
			continue
		}
		o.pts[k] = list[i].PT
		if k.IsAudio() && (codec.Codec(k).CanEncode() || !audio) {
			o.codec, audio = codec.Codec(k), true
		}
	}
}

// negotiate sets the destination: the signalled address, or the source learned for it.
func (o *outbound) negotiate(r Remote, source netip.AddrPort) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(r.Formats) > 0 {
		o.setTypes(r.Formats)
	}
	if r.ice {
		return
	}
	o.to, o.rtcpTo = r.Addr, r.RTCP
	if o.rtcpTo.Port() == 0 {
		o.rtcpTo = portAbove(r.Addr)
	}
	switch {
	case r.Addr.Addr().IsUnspecified():
		o.to, o.rtcpTo = netip.AddrPort{}, netip.AddrPort{}
	case source.IsValid():
		o.aimAt(source)
	case !r.Addr.Addr().IsValid():
		o.to, o.rtcpTo = netip.AddrPort{}, netip.AddrPort{}
	}
}

// aimAt sends to a learned source. Unless that is the signalled address, RTCP is sent to the port above it.
func (o *outbound) aimAt(source netip.AddrPort) {
	if o.to.Addr() != source.Addr() || o.to.Port() != source.Port() {
		o.rtcpTo = portAbove(source)
	}
	o.to = source
}

func portAbove(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr(), a.Port()+1) }

func (o *outbound) redirect(source netip.AddrPort) {
	o.mu.Lock()
	o.aimAt(source)
	o.mu.Unlock()
}

func (o *outbound) close() {
	o.mu.Lock()
	o.closed, o.source = true, nil
	o.mu.Unlock()
}

func (o *outbound) stats(st *StreamStats) {
	o.mu.Lock()
	defer o.mu.Unlock()
	st.Sent, st.SentBytes, st.Remote = o.packets, o.bytes, o.to
}

// mapSource maps a source onto our sequence numbers and timeline, so that it continues where the previous one
// stopped. It reports whether the source is new.
func (o *outbound) mapSource(from *Stream, h rtp.Header, now int64) bool {
	if o.mapped && o.source == from && o.sent.sourceSSRC == h.SSRC {
		return false
	}
	next := o.ts
	if o.started { // at least one packet, else the time that has passed
		next += max(o.clock/50, o.elapsed(now))
	}
	o.source, o.sent.sourceSSRC, o.mapped, o.sent.ofMapping = from, h.SSRC, true, 0
	o.sent.seqOffset, o.sent.tsOffset = o.seq+1-h.Seq, next-h.TS
	return true
}

// mapPacket maps a relayed packet onto our sequence numbers and timeline. A source that restarts its numbers under the
// same SSRC is mapped anew, as another source is. It reports false for a packet that must not be sent: a repetition,
// or a packet from before the mapping.
func (o *outbound) mapPacket(from *Stream, h *rtp.Header, k rtp.Kind, now int64) bool {
	first := o.mapSource(from, *h, now)
	switch o.placeOf(h.Seq+o.sent.seqOffset, h.TS+o.sent.tsOffset, k) {
	case placeUsed:
		return false
	case placeRestarted:
		o.mapped = false
		first = o.mapSource(from, *h, now)
	}
	h.Marker = first || h.Marker
	h.Seq += o.sent.seqOffset
	h.TS += o.sent.tsOffset
	return true
}

// place says how a mapped packet stands to the packets sent before.
type place uint8

const (
	placeFree      place = iota // its number was not sent
	placeUsed                   // its number was sent, or belongs to an earlier source
	placeRestarted              // the source restarted its numbers
)

const (
	// lateWindow is the number of sequence numbers within which a packet counts as late.
	lateWindow = 64
	// maxSequenceGap is the largest gap that counts as lost packets (RFC 3550 A.1: MAX_DROPOUT).
	maxSequenceGap = 3000
	// repeatsOfRestart is the number of successive repetitions that show a restart with the same timestamps.
	repeatsOfRestart = 4
)

// placeOf returns the place of a mapped packet. A late packet is not newer than the newest one. Audio with a new number is not older;
// events are, beside audio.
func (o *outbound) placeOf(seq uint16, ts uint32, k rtp.Kind) place {
	n := o.sent
	ahead := int(int16(seq - o.seq))
	switch {
	case ahead > 0 && k.IsAudio() && int32(ts-o.ts) < 0:
		return placeRestarted
	case ahead > 0 && ahead <= maxSequenceGap:
		n.repeats = 0
		return placeFree
	case ahead > 0 || ahead <= -lateWindow || int32(ts-o.ts) > 0:
		return placeRestarted
	case -ahead < int(n.ofMapping) && !n.has(-ahead):
		return placeFree
	case -ahead < int(n.ofMapping) && n.ts[seq%lateWindow] != ts:
		return placeRestarted
	}
	if n.repeats == 0 || seq != n.repeated+1 {
		n.repeats = 0
	}
	n.repeats, n.repeated = n.repeats+1, seq
	if n.repeats == repeatsOfRestart {
		return placeRestarted
	}
	return placeUsed
}

// sentNumbers holds the sequence numbers that were sent, back from the highest one, and how the source is mapped.
type sentNumbers struct {
	bits      uint64             // bit i is set if the number i below the highest was sent
	ts        [lateWindow]uint32 // timestamps, by number modulo lateWindow
	repeated  uint16             // number of the last repetition
	repeats   uint8              // successive repetitions
	ofMapping uint8              // numbers since the source was mapped, at most lateWindow
	encrypted bool               // packets of the SSRC were encrypted, by this encryptor or an earlier one

	seqOffset  uint16 // of the mapped source, to our numbers
	tsOffset   uint32
	sourceSSRC uint32
}

func (n *sentNumbers) has(back int) bool { return n.bits>>back&1 != 0 }

// note records a number that is ahead of the highest one, or not ahead of it. It reports false if the number was sent.
func (n *sentNumbers) note(seq uint16, ahead int, ts uint32) bool {
	switch {
	case ahead > 0:
		n.bits = n.bits<<min(ahead, lateWindow) | 1
		n.ofMapping = uint8(min(int(n.ofMapping)+ahead, lateWindow))
	case ahead <= -lateWindow || n.has(-ahead):
		return false
	default:
		n.bits |= 1 << -ahead
	}
	n.ts[seq%lateWindow] = ts
	return true
}

// elapsed returns how far the timeline has advanced since the last packet.
func (o *outbound) elapsed(now int64) uint32 {
	return uint32((now - o.sentAt) / 1000 * int64(o.clock) / 1_000_000)
}

// transmit sends b as one packet, unless its number was sent before: one SRTP index never encrypts twice (RFC 3711
// §9.1). The header overwrites its first 12 bytes. The caller holds o.mu.
func (o *outbound) transmit(socket packetSocket, h rtp.Header, b []byte, now int64) {
	h.SSRC = o.ssrc
	ahead := int(int16(h.Seq - o.seq))
	if !o.sent.note(h.Seq, ahead, h.TS) {
		return
	}
	if ahead > 0 {
		o.seq = h.Seq
	}
	if !o.started || int32(h.TS-o.ts) > 0 {
		o.ts, o.sentAt = h.TS, now
	}
	o.started = true
	h.Put(b)
	payload := uint64(len(b) - rtp.HeaderLen)
	if o.protected {
		if b = o.encrypt(b, false); b == nil {
			return
		}
	}
	if socket.send(b, o.to) {
		o.packets++
		o.bytes += payload
	}
}
