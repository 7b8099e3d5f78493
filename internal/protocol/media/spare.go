package media

import (
	"errors"
	"net/netip"
	"sync"
)

// spares are streams whose sockets are open before a call needs them: opening and binding two takes longer than all else that a leg's
// media needs. They are replaced when a call ends, so that nobody waits for it. What is sent to them meanwhile is thrown away.
type spares struct {
	mu  sync.Mutex // guards all
	all []*Stream
}

// sparesKept is how many there are: two calls that begin at once.
const sparesKept = 4

// take returns a spare, and wakes it; nil where there is none.
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

// put keeps a stream, unless there are enough.
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

// openAhead opens one spare, where one is missing and ports are left.
func (e *Engine) openAhead() {
	if !e.spares.short() {
		return
	}
	s, err := e.bind(e.loops.loops[0], e.cfg.Bind)
	if err != nil {
		return // who needs a stream finds out
	}
	s.in.shut()
	e.mu.Lock()
	kept := !e.closed && e.spares.put(s)
	e.mu.Unlock()
	if !kept {
		e.unbind(s)
	}
}

// obtain is a spare that fits, or a stream bound now. When all ports are taken, a spare of another loop will do.
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

// bind opens the sockets of a stream on a random free pair of ports.
func (e *Engine) bind(loop *loopSlot, bind netip.Addr) (*Stream, error) {
	s := newStream(e, loop, bind)
	port, err := e.ports.bind(func(p uint16) error { return s.listen(netip.AddrPortFrom(bind, p)) })
	s.local = netip.AddrPortFrom(bind, port)
	return s, err
}

// unbind gives the ports of a stream back that no call had.
func (e *Engine) unbind(s *Stream) {
	s.rtp.close()
	s.rtcp.close()
	e.ports.release(s.local.Port())
}

// dropSpares closes what was opened ahead. The engine is closed: there will be no more.
func (e *Engine) dropSpares() {
	for s := e.spares.take(); s != nil; s = e.spares.take() {
		e.unbind(s)
	}
}
