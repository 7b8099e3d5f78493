package media

import (
	"errors"
	"net/netip"
	"sync"
)

// prewarmedStreams keeps a few streams with open sockets, because opening and binding two sockets is the slowest part
// of creating a leg. They are replaced when a call ends, so that no call waits for it. Packets that arrive meanwhile
// are dropped.
type prewarmedStreams struct {
	most int // streams that are kept; fixed

	mu  sync.Mutex // guards all
	all []*Stream
}

// prewarmedCount is the number of prewarmed streams: enough for two calls that start at once.
const prewarmedCount = 4

// take returns a prewarmed stream and lets it receive packets. It returns nil if there is none.
func (p *prewarmedStreams) take() *Stream {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.all) - 1
	if last < 0 {
		return nil
	}
	s := p.all[last]
	p.all[last] = nil
	p.all = p.all[:last]
	s.in.mu.Lock()
	s.in.closed = false
	s.in.mu.Unlock()
	return s
}

// put keeps a stream. It returns false if there are enough.
func (p *prewarmedStreams) put(s *Stream) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.all) >= p.most {
		return false
	}
	p.all = append(p.all, s)
	return true
}

func (p *prewarmedStreams) belowTarget() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.all) < p.most
}

// prewarm opens one stream ahead, if one is missing and ports are left. Streams for emergency calls come first.
func (e *Engine) prewarm() {
	pool := &e.kept
	if !pool.belowTarget() {
		pool = &e.prewarmed
	}
	if !pool.belowTarget() {
		return
	}
	s, err := e.bindStream(e.loops.loops[0], e.cfg.Bind)
	if err != nil {
		return // the next Open reports the error
	}
	s.in.close()
	e.mu.Lock()
	kept := !e.closed && pool.put(s)
	e.mu.Unlock()
	if !kept {
		e.unbindStream(s)
	}
}

// takeStream returns a matching prewarmed stream, or a newly bound one. If all ports are taken, it returns a
// prewarmed stream of another loop, for an emergency call also one that is kept back.
func (e *Engine) takeStream(c Claim, loop *loopSlot, bind netip.Addr) (*Stream, error) {
	fits := bind == e.cfg.Bind
	if fits && loop == e.loops.loops[0] {
		if s := e.prewarmed.take(); s != nil {
			return s, nil
		}
	}
	s, err := e.bindStream(loop, bind)
	if !fits || !errors.Is(err, ErrNoPorts) {
		return s, err
	}
	if s := e.prewarmed.take(); s != nil {
		return s, nil
	}
	if c.Use == Emergency {
		if s := e.kept.take(); s != nil {
			return s, nil
		}
	}
	return nil, err
}

// bindStream opens the sockets of a stream on a random free pair of ports.
func (e *Engine) bindStream(loop *loopSlot, bind netip.Addr) (*Stream, error) {
	s := newStream(e, loop, bind)
	port, err := e.ports.bind(func(p uint16) error { return s.listen(netip.AddrPortFrom(bind, p)) })
	s.local = netip.AddrPortFrom(bind, port)
	return s, err
}

// unbindStream releases the ports of a stream that no call used.
func (e *Engine) unbindStream(s *Stream) {
	s.rtp.close()
	s.rtcp.close()
	e.ports.release(s.local.Port())
}

// closePrewarmed closes the prewarmed streams. The engine is closed, so that no more are opened.
func (e *Engine) closePrewarmed() {
	for _, pool := range []*prewarmedStreams{&e.prewarmed, &e.kept} {
		for s := pool.take(); s != nil; s = pool.take() {
			e.unbindStream(s)
		}
	}
}
