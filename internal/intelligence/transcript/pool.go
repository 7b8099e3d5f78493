package transcript

import (
	"context"
	"sync"
)

// defaultMaxHeld limits the audio that waits in memory for a worker, over all calls, in bytes.
const defaultHold = 32 << 20

// RecognizerPool recognises the speech segments of all calls with a fixed number of workers, in order of arrival.
// Segments of calls that have ended go first, because their transcripts are waited for. It is safe for concurrent
// use.
type Pool struct {
	listener Listener
	ctx      context.Context
	cancel   context.CancelFunc
	workers  sync.WaitGroup
	more     *sync.Cond

	mu     sync.Mutex // guards the fields below
	queue  []*piece
	held   int64 // bytes of audio waiting in memory
	hold   int64 // its limit
	closed bool
}

// NewRecognizerPool starts the workers. Close ends them.
func NewPool(l Listener, workers int) *Pool {
	p := &Pool{listener: l, hold: defaultHold}
	p.more = sync.NewCond(&p.mu)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	for range max(workers, 1) {
		p.workers.Go(p.work)
	}
	return p
}

// Close discards the queue and waits for the workers.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	left := p.queue
	p.queue = nil
	p.mu.Unlock()
	p.cancel()
	p.more.Broadcast()
	p.workers.Wait()
	for _, s := range left {
		s.live.failed(s, context.Canceled)
	}
}

// Backlog returns the number of segments waiting for a worker.
func (p *Pool) Backlog() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queue)
}

// add queues a segment. If too much audio is waiting already, the segment's audio is dropped and read from the
// recording later. Without a recording such a segment is rejected.
func (p *Pool) add(s *piece) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	size := int64(len(s.audio))
	if p.held+size > p.hold {
		if s.live.source == nil {
			return false
		}
		s.audio, size = nil, 0
	}
	p.held += size
	p.queue = append(p.queue, s)
	p.more.Signal()
	return true
}

// next waits for a segment; it returns nil after Close.
func (p *Pool) next() *piece {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) == 0 && !p.closed {
		p.more.Wait()
	}
	if p.closed {
		return nil
	}
	at := 0
	for i, s := range p.queue {
		if s.live.over.Load() {
			at = i
			break
		}
	}
	s := p.queue[at]
	p.queue = append(p.queue[:at], p.queue[at+1:]...)
	p.held -= int64(len(s.audio))
	return s
}

func (p *Pool) work() {
	for s := p.next(); s != nil; s = p.next() {
		heard, err := p.recognise(s)
		if err != nil {
			s.live.failed(s, err)
			continue
		}
		s.live.heard(s, heard)
	}
}

// recognise tries a segment twice, because an engine may have crashed.
func (p *Pool) recognise(s *piece) (Heard, error) {
	clip, err := s.clip()
	if err != nil {
		return Heard{}, err
	}
	heard, err := p.listener.Transcribe(p.ctx, clip)
	if err != nil && p.ctx.Err() == nil {
		heard, err = p.listener.Transcribe(p.ctx, clip)
	}
	return heard, err
}
