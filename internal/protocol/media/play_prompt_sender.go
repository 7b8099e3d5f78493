package media

import "sync"

import (
	"soniq/internal/protocol/media/rtp"
)

import (
	"soniq/internal/protocol/media/dtmf"
)

import (
	"soniq/internal/protocol/media/codec"
)

import (
	"soniq/internal/protocol/media/dsp"
)

// promptSender encodes and sends the audio of the server itself to a leg, with one encoder and one timeline. A
// prompt, a mixer and silence therefore follow each other without a break. It allocates nothing once it runs.
type promptSender struct {
	mu         sync.Mutex // guards the fields below; taken before out.mu
	generation uint32
	ts         uint32
	codec      codec.Codec
	encoder    codec.Encoder // nil before the first packet
	inputRate  int           // input rate of resample
	resample   *dsp.Resampler

	pcm    []int16
	packet []byte
	sentAt int64 // time of the last packet, 0 before the first

	recordRing  *rtp.Ring // of the recorder, for the player's audio; nil while paused
	recordClaim *rtp.Ring // of the recorder, also while paused
}

// An audioSource is the origin of audio that the server sends itself.
type audioSource bool

const (
	fromMixer  audioSource = false // suppressed while the player sends
	fromPlayer audioSource = true
)

// encodeAndSend sends 20 ms of audio at rate, 8000 or 16000, in the leg's preferred codec. It does nothing if the leg
// takes no audio from this source now.
func (s *Stream) encodeAndSend(pcm []int16, rate int, now int64, as audioSource) {
	c, ok := s.out.audioCodec(as, now)
	if !ok {
		return
	}
	v := &s.promptSender
	v.mu.Lock()
	defer v.mu.Unlock()
	v.prepare(c, rate)
	v.packet = v.packet[:rtp.HeaderLen]
	if v.resample == nil {
		v.packet = v.encoder.Encode(v.packet, pcm)
	} else {
		v.pcm = v.resample.Process(v.pcm[:0], pcm)
		v.packet = v.encoder.Encode(v.packet, v.pcm)
	}
	if len(v.packet) == rtp.HeaderLen {
		return
	}
	h := v.nextHeader(now)
	v.ts += v.frameTicks()
	if v.recordRing != nil && as == fromPlayer {
		v.recordRing.Push(h, rtp.Kind(c), v.packet[rtp.HeaderLen:], now)
	}
	s.sendLocal(h, rtp.Kind(c), v.packet, now, as)
}

// frameTicks returns 20 ms on the codec's clock.
func (v *promptSender) frameTicks() uint32 { return uint32(v.codec.Clock() / 50) }

// prepare creates the encoder and the resampler if the codec or the rate changed.
func (v *promptSender) prepare(c codec.Codec, rate int) {
	if v.encoder == nil || c != v.codec {
		v.codec, v.encoder, v.inputRate = c, codec.NewEncoder(c), 0
		v.generation++
		v.packet = append(v.packet[:0], make([]byte, rtp.HeaderLen)...)
	}
	if rate != v.inputRate {
		v.inputRate, v.resample = rate, dsp.NewResampler(rate, v.encoder.Rate())
	}
}

// nextHeader returns the header of the next packet. After a pause the timeline advances by the time that passed (RFC
// 3550 §5.1), and the marker is set.
func (v *promptSender) nextHeader(now int64) rtp.Header {
	h := rtp.Header{SSRC: v.generation}
	if gap := now - v.sentAt; v.sentAt == 0 || gap > 5*rtp.FrameTime {
		h.Marker = true
		if v.sentAt != 0 {
			v.ts += uint32(gap/1000*int64(v.codec.Clock())/1_000_000) - v.frameTicks()
		}
	}
	v.sentAt = now
	h.TS = v.ts
	return h
}

// sendDTMFPacket sends one packet of a digit. n counts the packets from 0; ms is the duration so far. All packets
// carry the time at which the digit began (RFC 4733 §2.5.1).
func (s *Stream) sendDTMFPacket(code byte, n, ms int, end bool, now int64) {
	k, c, ok := s.out.eventKind()
	if !ok {
		return
	}
	v := &s.promptSender
	v.mu.Lock()
	defer v.mu.Unlock()
	v.prepare(c, max(v.inputRate, 8000))
	h := rtp.Header{SSRC: v.generation, TS: v.ts, Marker: n == 0}
	if n == 0 {
		h = v.nextHeader(now)
		h.Marker = true
	}
	v.sentAt = now
	v.packet = append(v.packet[:rtp.HeaderLen], 0, 0, 0, 0)
	dtmf.PutEvent(v.packet[rtp.HeaderLen:], code, min(ms*k.Clock()/1000, 0xFFFF), end)
	s.sendLocal(h, k, v.packet, now, fromPlayer)
}

// advanceTimeline advances the timeline by time that was not sent as audio.
func (s *Stream) advanceTimeline(ms int, now int64) {
	v := &s.promptSender
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ts += uint32(ms * v.codec.Clock() / 1000)
	v.sentAt = now
}

// sendLocal sends a packet of the server's own. b has room for the header.
func (s *Stream) sendLocal(h rtp.Header, k rtp.Kind, b []byte, now int64, as audioSource) {
	o := &s.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.canSend(as, now) || o.pts[k] == noPT {
		return
	}
	if !k.IsEvent() {
		o.clock = uint32(k.Clock())
	}
	if as == fromMixer {
		o.relayedAt = now
	}
	h.Marker = o.mapSource(nil, h, now) || h.Marker
	h.PT = o.pts[k]
	h.Seq = o.seq + 1
	h.TS += o.sent.tsOffset
	o.transmit(s.rtp, h, b, now)
}

// canSend reports whether audio of this source can be sent now. The caller holds o.mu.
func (o *outbound) canSend(as audioSource, now int64) bool {
	return !o.closed && o.enabled && o.to.IsValid() && (as == fromPlayer || !o.muted && now >= o.digitUntil)
}

// audioCodec returns the codec to send, and whether the leg takes audio of this source now.
func (o *outbound) audioCodec(as audioSource, now int64) (codec.Codec, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.codec, o.canSend(as, now) && o.pts[o.codec] != noPT && o.codec.CanEncode()
}

// eventKind returns the kind of events that the leg takes with the current codec.
func (o *outbound) eventKind() (rtp.Kind, codec.Codec, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	first, second := rtp.KindEvent, rtp.KindEventOpus
	if o.codec == codec.Opus {
		first, second = second, first
	}
	if o.pts[first] == noPT {
		first = second
	}
	return first, o.codec, o.pts[first] != noPT
}
