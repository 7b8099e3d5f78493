package media

// Two legs that are bridged but have no codec in common are joined by a mixer of
// their own. It is made when the first packet comes that the other leg does not
// understand: most bridges never need one.

// convert asks for a conversion of what s says. It is called on the packet loop.
func (e *Engine) convert(s *Stream) {
	select {
	case e.foreign <- s:
	default: // the next packet asks again
	}
}

// converter makes what convert and strike ask for. It ends with the engine.
func (e *Engine) converter() {
	defer close(e.converted)
	for {
		select {
		case <-e.quit:
			return
		case s := <-e.foreign:
			s.translate()
		case k := <-e.struck:
			k.tell()
		}
	}
}

// translate lets the leg s is bridged to hear s in its own codec.
func (s *Stream) translate() {
	e := s.engine
	e.bridging.Lock()
	defer e.bridging.Unlock()
	s.in.mu.Lock()
	peer, already := s.in.peer, s.in.converted
	s.in.mu.Unlock()
	if peer == nil || already {
		return
	}
	m, hears := s.conversion, map[*Stream][]*Stream{peer: {s}}
	if m == nil {
		m = peer.conversion
	}
	if m == nil {
		var err error
		if m, err = e.NewMixer(); err != nil {
			return
		}
	} else { // the other direction has one
		hears[s] = []*Stream{peer}
	}
	s.conversion, peer.conversion = m, m
	m.set(hears, false)
	s.in.mu.Lock()
	s.in.converted = true
	s.in.mu.Unlock()
}

// untranslate ends the conversion between s and its peer. The engine's bridging lock is held.
func (s *Stream) untranslate(peer *Stream) {
	m := s.conversion
	if m == nil {
		return
	}
	for _, t := range []*Stream{s, peer} {
		if t == nil {
			continue
		}
		t.conversion = nil
		t.in.mu.Lock()
		t.in.converted, t.in.mix = false, nil
		t.in.mu.Unlock()
	}
	m.set(nil, false)
	m.mu.Lock()
	m.closed = true // its clock ends by itself
	m.mu.Unlock()
	m.engine.mu.Lock()
	delete(m.engine.mixers, m)
	m.engine.mu.Unlock()
}

// reconsider lets a bridge begin anew as a relay: codecs may have changed.
func (s *Stream) reconsider() {
	s.engine.bridging.Lock()
	defer s.engine.bridging.Unlock()
	if s.conversion != nil {
		s.untranslate(s.Bridged())
	}
}
