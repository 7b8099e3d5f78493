package rtp

import "encoding/binary"

// HeldKey follows the packets of one RFC 4733 event, from one key being pressed to its release. A key that is held longer
// than a duration can express comes in several segments with timestamps of their own (RFC 4733 §2.5.1.3): 8.2 s at 8000 Hz,
// 1.4 s at 48000 Hz.
type HeldKey struct {
	SSRC, TS uint32 // of the current segment, as received
	Before   uint32 // duration of the earlier segments
	duration uint16 // of the current segment so far
	code     byte
	state    heldState
}

type heldState uint8

const (
	unknown heldState = iota // no packet was seen
	held
	ended // a packet with the end bit was seen
)

// Known reports whether a packet was seen.
func (k *HeldKey) Known() bool { return k.state != unknown }

// LongestSegment is the largest duration of a segment, which its last packet has unless the key was released.
const LongestSegment = 0xFFFF

// Follow records a packet, whose payload has at least 4 bytes. It reports whether the packet is the first one seen of another
// key.
func (k *HeldKey) Follow(h Header, payload []byte) (begun bool) {
	duration := binary.BigEndian.Uint16(payload[2:])
	switch {
	case k.Known() && k.SSRC == h.SSRC && k.TS == h.TS:
		duration = max(duration, k.duration) // packets may overtake each other
	case k.continues(h, payload[0]):
		k.Before += h.TS - k.TS
		k.TS = h.TS
	default:
		*k, begun = HeldKey{state: held, SSRC: h.SSRC, TS: h.TS, code: payload[0]}, true
	}
	k.duration = duration
	if payload[1]&0x80 != 0 {
		k.state = ended
	}
	return begun
}

// continues reports whether a packet with another timestamp is the next segment of the same key. Its timestamp follows the
// previous segment at once, also if packets of that were lost.
func (k *HeldKey) continues(h Header, code byte) bool {
	if k.state != held || h.Marker || k.SSRC != h.SSRC || k.code != code {
		return false
	}
	elapsed := h.TS - k.TS
	return int32(elapsed) > 0 && (k.duration == LongestSegment || elapsed == LongestSegment ||
		elapsed == uint32(k.duration) && elapsed > LongestSegment/2)
}
