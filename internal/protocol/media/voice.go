package media

import "sync"

// voice is how we speak to a leg ourselves, whoever feeds it: one encoder and
// one time line, so that a prompt, a mixer and silence follow each other without
// a break. Nothing here allocates once it runs.
type voice struct {
	mu       sync.Mutex // guards all below; taken before out.mu
	run      uint32
	ts       uint32
	codec    Codec
	encoder  encoder // nil before the first word
	from     int     // rate of what resample takes
	resample *resampler

	pcm    []int16
	packet []byte
	at     int64 // when the last packet was sent, 0 before

	tee     *ring // recorder's, of what the player says; nil while paused
	claimed *ring // recorder's, also while paused
}

// A speaker is who uses a voice.
type speaker bool

const (
	mixing  speaker = false // gives way to the player
	playing speaker = true
)

// speak sends 20 ms of sound at rate, 8000 or 16000, in the codec the leg likes
// best. It does nothing where the leg takes no audio from this speaker now.
func (s *Stream) speak(pcm []int16, rate int, now int64, as speaker) {
	codec, ok := s.out.listens(as, now)
	if !ok {
		return
	}
	v := &s.voice
	v.mu.Lock()
	defer v.mu.Unlock()
	v.use(codec, rate)
	v.packet = v.packet[:rtpHeaderLen]
	if v.resample == nil {
		v.packet = v.encoder.encode(v.packet, pcm)
	} else {
		v.pcm = v.resample.process(v.pcm[:0], pcm)
		v.packet = v.encoder.encode(v.packet, v.pcm)
	}
	if len(v.packet) == rtpHeaderLen {
		return
	}
	h := v.header(now)
	v.ts += v.step()
	if v.tee != nil && as == playing {
		v.tee.push(h, kind(codec), v.packet[rtpHeaderLen:], now)
	}
	s.sendOwn(h, kind(codec), v.packet, now, as)
}

// step is 20 ms on the codec's clock.
func (v *voice) step() uint32 { return uint32(v.codec.clock() / 50) }

// use gets the encoder and the resampler ready.
func (v *voice) use(codec Codec, rate int) {
	if v.encoder == nil || codec != v.codec {
		v.codec, v.encoder, v.from = codec, newEncoder(codec), 0
		v.run++
		v.packet = append(v.packet[:0], make([]byte, rtpHeaderLen)...)
	}
	if rate != v.from {
		v.from, v.resample = rate, newResampler(rate, v.encoder.rate())
	}
}

// header is that of the next packet. After a pause the time line goes on by the
// time that passed (RFC 3550 §5.1) and the marker says so.
func (v *voice) header(now int64) rtpHeader {
	h := rtpHeader{ssrc: v.run}
	if gap := now - v.at; v.at == 0 || gap > 5*frameTime {
		h.marker = true
		if v.at != 0 {
			v.ts += uint32(gap/1000*int64(v.codec.clock())/1_000_000) - v.step()
		}
	}
	v.at = now
	h.ts = v.ts
	return h
}

// press sends one packet of a digit: n counts them from 0, samples is how long
// it has lasted in ms. All have the time at which it began (RFC 4733 §2.5.1).
func (s *Stream) press(code byte, n, ms int, end bool, now int64) {
	k, codec, ok := s.out.events()
	if !ok {
		return
	}
	v := &s.voice
	v.mu.Lock()
	defer v.mu.Unlock()
	v.use(codec, max(v.from, 8000))
	h := rtpHeader{ssrc: v.run, ts: v.ts, marker: n == 0}
	if n == 0 {
		h = v.header(now)
		h.marker = true
	}
	v.at = now
	v.packet = append(v.packet[:rtpHeaderLen], 0, 0, 0, 0)
	putEvent(v.packet[rtpHeaderLen:], code, min(ms*k.clock()/1000, 0xFFFF), end)
	s.sendOwn(h, k, v.packet, now, playing)
}

// pass moves the time line on by what was not audio.
func (s *Stream) pass(ms int, now int64) {
	v := &s.voice
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ts += uint32(ms * v.codec.clock() / 1000)
	v.at = now
}

// sendOwn sends a packet of our own; b has room for the header.
func (s *Stream) sendOwn(h rtpHeader, k kind, b []byte, now int64, as speaker) {
	o := &s.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ready(as, now) || o.pts[k] == noPT {
		return
	}
	if !k.event() {
		o.clock = uint32(k.clock())
	}
	if as == mixing {
		o.fedAt = now
	}
	h.marker = o.adopt(nil, h, now) || h.marker
	h.pt = o.pts[k]
	h.seq = o.seq + 1
	h.ts += o.tsOffset
	o.transmit(s.rtp, h, b, now)
}

// ready reports whether something can be sent now. o.mu is held.
func (o *outbound) ready(as speaker, now int64) bool {
	return !o.closed && o.enabled && o.to.IsValid() && (as == playing || !o.muted && now >= o.pressed)
}

// listens returns the codec to speak in, if the leg is to be spoken to.
func (o *outbound) listens(as speaker, now int64) (Codec, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.codec, o.ready(as, now) && o.pts[o.codec] != noPT && o.codec.encodes()
}

// events returns the kind of events the leg takes with the codec we speak.
func (o *outbound) events() (kind, Codec, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	first, second := kindEvent, kindEventOpus
	if o.codec == Opus {
		first, second = second, first
	}
	if o.pts[first] == noPT {
		first = second
	}
	return first, o.codec, o.pts[first] != noPT
}
