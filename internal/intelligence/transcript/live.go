package transcript

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"sync/atomic"
)

// LiveTranscription recognises one recording of a call while it is made. Write takes the same bytes as the recording;
// each speech segment is queued in the pool as soon as it ends. A nil *LiveTranscription ignores everything, so that
// callers need no special case for a call without an engine.
type LiveTranscription struct {
	pool       *RecognizerPool
	format     Format
	source     io.ReaderAt   // the recording so far; nil if there is none
	language   func() string // BCP 47; called for each segment
	tracks     []*track
	audioEnded atomic.Bool // End was called

	// onSegment is called for each recognised segment, in the order of recognition, by a worker of the pool. Set it
	// before the first Write. May be nil.
	onSegment func(Segment)
	// vocabulary returns the terms of the call. Set it before the first Write. It is called once, for the first
	// segment. May be nil.
	vocabulary Vocabulary
	terms      func() []Term // calls it once

	mu          sync.Mutex // guards the fields below
	segments    []Segment
	pending     int           // segments in the pool
	failedCount int           // number of segments that could not be recognised
	lastErr     error         // error of the last of them
	idle        chan struct{} // closed when waiting is 0; replaced when it is not
}

// track is one channel of the audio.
type track struct {
	detector *speechDetector
	audio    []byte // raw samples from position base on
	base     int64  // position of audio[0], in samples
	detected int64  // samples the detector has seen
}

// segmentJob is a speech segment to recognise.
type segmentJob struct {
	live     *LiveTranscription
	channel  int
	from, to int64  // samples
	audio    []byte // raw; nil if it has to be read from the recording
}

// NewLiveTranscription returns a transcription of audio in a format. source reads the recording while it is being
// written, by byte offset from its first sample; it may be nil. language returns the language of the call.
func NewLiveTranscription(pool *RecognizerPool, f Format, language func() string, source io.ReaderAt) (*LiveTranscription, error) {
	if err := f.valid(); err != nil {
		return nil, err
	}
	l := &LiveTranscription{pool: pool, format: f, source: source, language: language, idle: make(chan struct{})}
	l.terms = sync.OnceValue(func() []Term { return l.vocabulary.limited() })
	close(l.idle)
	for range f.Channels {
		l.tracks = append(l.tracks, &track{detector: newSpeechDetector()})
	}
	return l, nil
}

// Write takes the next interleaved frames, whole samples of all channels. It never waits for recognition. Call it
// from one goroutine; calls after End are ignored.
func (l *LiveTranscription) Write(frames []byte) {
	if l == nil || l.audioEnded.Load() {
		return
	}
	for c, t := range l.tracks {
		t.audio = l.format.channel(t.audio, frames, c)
		l.detect(c, t)
	}
}

// End marks the end of the audio: open segments are queued in the pool, and the call's segments get priority.
func (l *LiveTranscription) End() {
	if l == nil || l.audioEnded.Swap(true) {
		return
	}
	for c, t := range l.tracks {
		if s, ok := t.detector.flush(); ok {
			l.send(c, t, s)
		}
		t.audio = nil
	}
}

// Wait returns all segments once everything written so far has been recognised. If segments could not be recognised,
// it returns the others together with the last error.
func (l *LiveTranscription) Wait(ctx context.Context) ([]Segment, error) {
	if l == nil {
		return nil, nil
	}
	l.mu.Lock()
	quiet := l.idle
	l.mu.Unlock()
	select {
	case <-quiet:
	case <-ctx.Done():
		return l.Segments(), fmt.Errorf("wait for the last segments: %w", ctx.Err())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failedCount > 0 {
		return l.sorted(), fmt.Errorf("%d segments were not recognised: %w", l.failedCount, l.lastErr)
	}
	return l.sorted(), nil
}

// Segments returns the segments recognised so far, in order.
func (l *LiveTranscription) Segments() []Segment {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sorted()
}

func (l *LiveTranscription) sorted() []Segment { return inOrder(append([]Segment(nil), l.segments...)) }

// detect runs the speech detector over whole 20 ms frames and drops audio that is no longer needed.
func (l *LiveTranscription) detect(channel int, t *track) {
	size, step := l.format.sampleBytes(), int64(l.format.Rate/framesPerSecond)
	for {
		at := int(t.detected-t.base) * size
		end := at + int(step)*size
		if end > len(t.audio) {
			break
		}
		t.detected += step
		if s, ok := t.detector.frame(l.format.energy(t.audio[at:end])); ok {
			l.send(channel, t, s)
		}
	}
	t.dropBefore(t.detector.firstNeeded()*step, size)
}

// dropBefore drops audio before a position, in blocks above 8 KB rather than at every packet.
func (t *track) dropBefore(position int64, size int) {
	if drop := int(position-t.base) * size; drop > 8192 {
		t.audio = append(t.audio[:0], t.audio[drop:]...)
		t.base = position
	}
}

// send queues a segment in the pool.
func (l *LiveTranscription) send(channel int, t *track, s frameSpan) {
	step, size := int64(l.format.Rate/framesPerSecond), int64(l.format.sampleBytes())
	p := &segmentJob{live: l, channel: channel, from: s.from * step, to: s.to * step}
	lo, hi := (p.from-t.base)*size, min((p.to-t.base)*size, int64(len(t.audio)))
	p.audio = append([]byte(nil), t.audio[lo:hi]...)
	l.addPending()
	if !l.pool.add(p) {
		l.failed(p, errQueueFull)
	}
}

var errQueueFull = fmt.Errorf("too much speech is waiting to be recognised")

// clip returns the audio of a segment, from memory or from the recording.
func (p *segmentJob) clip() (Clip, error) {
	f, raw := p.live.format, p.audio
	if raw == nil {
		var err error
		if raw, err = readChannel(p.live.source, f, p.channel, p.from, p.to); err != nil {
			return Clip{}, err
		}
	}
	pcm := f.decode(raw)
	return Clip{PCM: pcm, Rate: f.Rate, NarrowBand: isNarrowBand(pcm, f.Rate), Language: p.live.language(),
		Terms: p.live.terms()}, nil
}

func (l *LiveTranscription) addPending() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending == 0 {
		l.idle = make(chan struct{})
	}
	l.pending++
}

// done decrements the number of pending segments. The caller holds the lock.
func (l *LiveTranscription) done() {
	if l.pending--; l.pending == 0 {
		close(l.idle)
	}
}

func (l *LiveTranscription) failed(_ *segmentJob, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failedCount++
	l.lastErr = err
	l.done()
}

// recognized adds the result of a segment, and calls onSegment.
func (l *LiveTranscription) recognized(p *segmentJob, h Recognition) {
	s, ok := l.segment(p, h)
	l.mu.Lock()
	if ok {
		l.segments = append(l.segments, s)
	}
	l.mu.Unlock()
	if ok && l.onSegment != nil {
		l.onSegment(s)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done()
}

// segment converts a result, with times from the start of the recording; ok is false if it has no text.
func (l *LiveTranscription) segment(p *segmentJob, h Recognition) (s Segment, ok bool) {
	text := strings.TrimSpace(h.Text)
	if text == "" {
		return s, false
	}
	start := l.format.ms(p.from)
	s = Segment{Speaker: l.format.speakerOf(p.channel), Channel: p.channel, StartMS: start, EndMS: l.format.ms(p.to),
		Text: text, Confidence: round(h.Confidence)}
	for _, w := range h.Words {
		s.Words = append(s.Words, Word{w.Text, start + w.StartMS, start + w.EndMS, round(w.Confidence)})
	}
	if n := len(s.Words); n > 0 { // without the padding around the words
		s.StartMS, s.EndMS = s.Words[0].StartMS, s.Words[n-1].EndMS
	}
	return s, true
}

func round(x float64) float64 { return math.Round(x*1000) / 1000 }
