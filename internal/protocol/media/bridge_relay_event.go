package media

import "encoding/binary"

import (
	"soniq/internal/protocol/media/rtp"
)

// relayedEvent is a digit that is relayed between two legs with independent timelines.
type relayedEvent struct {
	from     *Stream
	ssrc, ts uint32 // as received
	startTS  uint32 // timestamp as sent
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
		if !o.mapPacket(from, &h, now) {
			return
		}
	} else {
		h.Seq, h.TS = o.seq+1, o.eventTimestamp(from, h, now)
		if to != k {
			scaleEvent(b[begin:], k, to)
		}
		o.digitUntil = now + 3*rtp.FrameTime // our own audio is suppressed meanwhile
	}
	h.PT = o.pts[to]
	o.transmit(s.rtp, h, b[begin-rtp.HeaderLen:end], now)
}

// eventTimestamp returns the timestamp at which a relayed digit began on our timeline.
func (o *outbound) eventTimestamp(from *Stream, h rtp.Header, now int64) uint32 {
	o.isNewEvent(from, h, now)
	return o.event.startTS
}

// isNewEvent reports whether a packet is the first one seen of a digit.
func (o *outbound) isNewEvent(from *Stream, h rtp.Header, now int64) bool {
	e := &o.event
	if e.from == from && e.ssrc == h.SSRC && e.ts == h.TS {
		return false
	}
	*e = relayedEvent{from: from, ssrc: h.SSRC, ts: h.TS, startTS: o.ts + o.elapsed(now)}
	return true
}

func scaleEvent(payload []byte, from, to rtp.Kind) {
	n := int(binary.BigEndian.Uint16(payload[2:]))
	binary.BigEndian.PutUint16(payload[2:], uint16(min(n*to.Clock()/from.Clock(), 0xFFFF)))
}
