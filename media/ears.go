package media

import "sync"

// ears is the decoded receiving side of a stream in its simplest form: packets
// in order of arrival, no jitter buffer. Its goroutine ends with the stream.
type ears struct {
	ring *ring
	wake chan struct{}
	quit chan struct{}
	done chan struct{}

	mu    sync.Mutex // guards the two functions
	audio func([]int16)
	digit func(rune)
}

// OnAudio calls f with each received packet decoded to 8 kHz, in order of
// arrival, from one goroutine of the stream; f must not Close it. The slice is
// valid until f returns. nil stops it. A slow f loses packets after half a second.
func (s *Stream) OnAudio(f func(pcm []int16)) {
	s.listenWith(func(e *ears) { e.audio = f })
}

// OnDTMF calls f once per received RFC 4733 event, when it begins, from the
// goroutine of OnAudio. nil stops it.
func (s *Stream) OnDTMF(f func(digit rune)) {
	s.listenWith(func(e *ears) { e.digit = f })
}

func (s *Stream) listenWith(set func(*ears)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if s.ears == nil {
		s.ears = &ears{ring: newRing(8 << 10), wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
		go s.ears.run()
		s.in.mu.Lock()
		s.in.ears = s.ears
		s.in.mu.Unlock()
	}
	s.ears.mu.Lock()
	set(s.ears)
	s.ears.mu.Unlock()
}

// hear is called on the packet loop.
func (e *ears) hear(h rtpHeader, k kind, payload []byte, now int64) {
	e.ring.push(h, k, payload, now)
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

func (e *ears) run() {
	defer close(e.done)
	var pcm []int16
	for {
		select {
		case <-e.quit:
			return
		case <-e.wake:
		}
		for f, ok := e.ring.next(); ok; f, ok = e.ring.next() {
			pcm = e.tell(f, pcm)
			e.ring.release(f)
		}
	}
}

func (e *ears) tell(f frame, pcm []int16) []int16 {
	e.mu.Lock()
	audio, digit := e.audio, e.digit
	e.mu.Unlock()
	switch {
	case f.kind == kindEvent && digit != nil:
		if d, ok := eventDigit(f.payload[0]); ok {
			digit(d)
		}
	case f.kind.audio() && audio != nil:
		pcm = Codec(f.kind).Decode(pcm, f.payload)
		audio(pcm)
	}
	return pcm
}

func (e *ears) stop() {
	close(e.quit)
	<-e.done
}
