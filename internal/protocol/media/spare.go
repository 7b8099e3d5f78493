package media

import (
	"errors"
	"net/netip"
	"sync"
)

// prewarmedStreams keeps a few streams with open sockets, because opening and binding two sockets is the slowest part
// of creating a leg. They are replaced when a call ends, so that no call waits for it. Packets that arrive meanwhile
// are dropped.
type spares struct {
	mu  sync.Mutex // guards all
	all []*Stream
}

// prewarmedCount is the number of prewarmed streams: enough for two calls that start at once.
const sparesKept = 4

// take returns a prewarmed stream and lets it receive packets. It returns nil if there is none.
func (p *spares) take() *Stream {
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
func (p *spares) put(s *Stream) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.all) >= sparesKept {
		return false
	}
	p.all = append(p.all, s)
	return true
}

func (p *spares) short() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.all) < sparesKept
}

// prewarm opens one stream ahead, if one is missing and ports are left.
func (e *Engine) openAhead() {
	if !e.spares.short() {
		return
	}
	s, err := e.bind(e.loops.loops[0], e.cfg.Bind)
	if err != nil {
		return // the next Open reports the error
	}
	s.in.shut()
	e.mu.Lock()
	kept := !e.closed && e.spares.put(s)
	e.mu.Unlock()
	if !kept {
		e.unbind(s)
	}
}

// takeStream returns a matching prewarmed stream, or a newly bound one. If all ports are taken, it returns a
// prewarmed stream of another loop.
func (e *Engine) obtain(loop *loopSlot, bind netip.Addr) (*Stream, error) {
	fits := bind == e.cfg.Bind
	if fits && loop == e.loops.loops[0] {
		if s := e.spares.take(); s != nil {
			return s, nil
		}
	}
	s, err := e.bind(loop, bind)
	if fits && errors.Is(err, ErrNoPorts) {
		if s := e.spares.take(); s != nil {
			return s, nil
		}
	}
	return s, err
}

// bindStream opens the sockets of a stream on a random free pair of ports.
func (e *Engine) bind(loop *loopSlot, bind netip.Addr) (*Stream, error) {
	s := newStream(e, loop, bind)
	port, err := e.ports.bind(func(p uint16) error { return s.listen(netip.AddrPortFrom(bind, p)) })
	s.local = netip.AddrPortFrom(bind, port)
	return s, err
}

// unbindStream releases the ports of a stream that no call used.
func (e *Engine) unbind(s *Stream) {
	s.rtp.close()
	s.rtcp.close()
	e.ports.release(s.local.Port())
}

// closePrewarmed closes the prewarmed streams. The engine is closed, so that no more are opened.
func (e *Engine) dropSpares() {
	for s := e.spares.take(); s != nil; s = e.spares.take() {
		e.unbind(s)
	}
}
