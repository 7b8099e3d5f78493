package media

// Transcoding between two bridged legs without a common codec. Each such bridge gets a mixer of its own. The mixer is
// created when the first packet arrives that the other leg cannot decode, because most bridges never need one.

// requestTranscoding asks the media worker to transcode the packets of s for its peer. It runs on the packet loop and
// never blocks.
func (e *Engine) convert(s *Stream) {
	select {
	case e.foreign <- s:
	default: // queue full: the next packet asks again
	}
}

// mediaWorker serves the requests of requestTranscoding and requestDTMF, because the packet loop must not wait for
// locks. It ends with the engine.
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

// startTranscoding sends the audio of s to its bridge peer in the peer's codec.
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
	} else { // the other direction is transcoded already
		hears[s] = []*Stream{peer}
	}
	s.conversion, peer.conversion = m, m
	m.set(hears, false)
	s.in.mu.Lock()
	s.in.converted = true
	s.in.mu.Unlock()
}

// stopTranscoding ends the transcoding between s and its peer. The caller holds the engine's bridging lock.
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
	m.closed = true // its clock goroutine ends by itself
	m.mu.Unlock()
	m.engine.mu.Lock()
	delete(m.engine.mixers, m)
	m.engine.mu.Unlock()
}

// resetTranscoding turns a transcoding bridge back into a relay, because the codecs may have changed.
func (s *Stream) reconsider() {
	s.engine.bridging.Lock()
	defer s.engine.bridging.Unlock()
	if s.conversion != nil {
		s.untranslate(s.Bridged())
	}
}
