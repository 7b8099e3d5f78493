package transcript

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
)

// defaultMaxHeld limits the audio that waits in memory for a worker, over all calls, in bytes.
const defaultMaxHeld = 32 << 20

// RecognizerPool recognises the speech segments of all calls with a fixed number of workers, in order of arrival.
// Segments of calls that have ended go first, because their transcripts are waited for. It is safe for concurrent
// use.
type RecognizerPool struct {
	recognizer Recognizer
	ctx        context.Context
	cancel     context.CancelFunc
	workers    sync.WaitGroup
	notEmpty   *sync.Cond

	mu        sync.Mutex // guards the fields below
	queue     []*segmentJob
	heldBytes int64 // bytes of audio waiting in memory
	maxHeld   int64 // its limit
	closed    bool

	wordless atomic.Int64 // segments without words
}

// NewRecognizerPool starts the workers. Close ends them.
func NewRecognizerPool(l Recognizer, workers int) *RecognizerPool {
	p := &RecognizerPool{recognizer: l, maxHeld: defaultMaxHeld}
	p.notEmpty = sync.NewCond(&p.mu)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	for range max(workers, 1) {
		p.workers.Go(p.work)
	}
	return p
}

// Close discards the queue and waits for the workers.
func (p *RecognizerPool) Close() {
	p.mu.Lock()
	p.closed = true
	left := p.queue
	p.queue = nil
	p.mu.Unlock()
	p.cancel()
	p.notEmpty.Broadcast()
	p.workers.Wait()
	for _, s := range left {
		s.live.failed(s, context.Canceled)
	}
}

// Backlog returns the number of segments waiting for a worker.
func (p *RecognizerPool) Backlog() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queue)
}

// Wordless returns the number of segments that have the loudness of speech, but in which no words were recognised.
func (p *RecognizerPool) Wordless() int64 { return p.wordless.Load() }

// add queues a segment. If too much audio is waiting already, the segment's audio is dropped and read from the
// recording later. Without a recording such a segment is rejected.
func (p *RecognizerPool) add(s *segmentJob) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	size := int64(len(s.audio))
	if p.heldBytes+size > p.maxHeld {
		if s.live.source == nil {
			return false
		}
		s.audio, size = nil, 0
	}
	p.heldBytes += size
	p.queue = append(p.queue, s)
	p.notEmpty.Signal()
	return true
}

// next waits for a segment; it returns nil after Close.
func (p *RecognizerPool) next() *segmentJob {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) == 0 && !p.closed {
		p.notEmpty.Wait()
	}
	if p.closed {
		return nil
	}
	at := 0
	for i, s := range p.queue {
		if s.live.audioEnded.Load() {
			at = i
			break
		}
	}
	s := p.queue[at]
	p.queue = append(p.queue[:at], p.queue[at+1:]...)
	p.heldBytes -= int64(len(s.audio))
	return s
}

func (p *RecognizerPool) work() {
	for s := p.next(); s != nil; s = p.next() {
		heard, err := p.recognise(s)
		if err != nil {
			s.live.failed(s, err)
			continue
		}
		if strings.TrimSpace(heard.Text) == "" {
			p.wordless.Add(1)
		}
		s.live.recognized(s, heard)
	}
}

// recognise tries a segment twice, because an engine may have crashed.
func (p *RecognizerPool) recognise(s *segmentJob) (Recognition, error) {
	clip, err := s.clip()
	if err != nil {
		return Recognition{}, err
	}
	heard, err := p.recognizer.Transcribe(p.ctx, clip)
	if err != nil && p.ctx.Err() == nil {
		heard, err = p.recognizer.Transcribe(p.ctx, clip)
	}
	return heard, err
}
