package media

import "encoding/binary"

import (
	"soniq/internal/protocol/media/rtp"
)

// relayedEvent is a digit that is relayed between two legs with independent timelines. Its segments become one event, which
// lasts as long as a duration can express.
type relayedEvent struct {
	from    *Stream
	key     rtp.HeldKey // as received
	startTS uint32      // timestamp as sent
}

// relayEvent relays a telephone-event packet. If the leg takes no events, the digit is sent as tones. If the leg's
// timeline follows the source, the event keeps its mapped timestamp. Otherwise the digit gets the time of its first
// packet, and its duration is converted to the clock of the leg's events. The caller holds o.mu.
func (s *Stream) relayEvent(from *Stream, h rtp.Header, k rtp.Kind, b []byte, begin, end int, now int64) {
	o := &s.out
	if end-begin < 4 {
		return
	}
	to := k
	if o.pts[to] == noPT {
		if to = rtp.KindEvent + rtp.KindEventOpus - k; o.pts[to] == noPT {
			s.relayEventAsTones(from, h, k, b[begin:end], now) // even while an earlier digit is still played
			return
		}
	}
	if o.muted {
		return
	}
	if o.source == from && to == k || !o.started && to == k {
		if !o.mapPacket(from, &h, k, now) {
			return
		}
	} else {
		o.isNewEvent(from, h, b[begin:end], now)
		h.Seq, h.TS = o.seq+1, o.event.startTS
		o.event.putDuration(b[begin:end], k, to)
		o.digitUntil = now + 3*rtp.FrameTime // our own audio is suppressed meanwhile
	}
	h.PT = o.pts[to]
	o.transmit(s.rtp, h, b[begin-rtp.HeaderLen:end], now)
}

// isNewEvent records a packet of a digit and reports whether it is the first one seen.
func (o *outbound) isNewEvent(from *Stream, h rtp.Header, payload []byte, now int64) bool {
	if o.event == nil || o.event.from != from {
		o.event = &relayedEvent{from: from}
	}
	e := o.event
	if !e.key.Follow(h, payload) {
		return false
	}
	e.startTS = o.ts + max(o.clock/50, o.elapsed(now)) // at least one packet after the digit before
	return true
}

// putDuration writes the duration of all segments of the digit so far, in the clock of the leg's events.
func (e *relayedEvent) putDuration(payload []byte, from, to rtp.Kind) {
	n := int64(e.key.Before) + int64(binary.BigEndian.Uint16(payload[2:]))
	binary.BigEndian.PutUint16(payload[2:], uint16(min(n*int64(to.Clock())/int64(from.Clock()), rtp.LongestSegment)))
}
