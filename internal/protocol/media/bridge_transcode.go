package media

// Transcoding between two bridged legs without a common codec. Each such bridge gets a mixer of its own. The mixer is
// created when the first packet arrives that the other leg cannot decode, because most bridges never need one.

// requestTranscoding asks the media worker to transcode the packets of s for its peer. It runs on the packet loop and
// never blocks.
func (e *Engine) requestTranscoding(s *Stream) {
	select {
	case e.transcodeRequests <- s:
	default: // queue full: the next packet asks again
	}
}

// mediaWorker serves the requests of requestTranscoding and requestDTMF, because the packet loop must not wait for
// locks. It ends with the engine.
func (e *Engine) mediaWorker() {
	defer close(e.workerDone)
	for {
		select {
		case <-e.quit:
			return
		case s := <-e.transcodeRequests:
			s.startTranscoding()
		case k := <-e.dtmfRequests:
			k.dispatch()
		}
	}
}

// startTranscoding sends the audio of s to its bridge peer in the peer's codec.
func (s *Stream) startTranscoding() {
	e := s.engine
	e.bridgeMu.Lock()
	defer e.bridgeMu.Unlock()
	s.in.mu.Lock()
	peer, already := s.in.peer, s.in.transcoded
	s.in.mu.Unlock()
	if peer == nil || already {
		return
	}
	m, hears := s.transcodingMixer, map[*Stream][]*Stream{peer: {s}}
	if m == nil {
		m = peer.transcodingMixer
	}
	if m == nil {
		var err error
		if m, err = e.NewMixer(); err != nil {
			return
		}
	} else { // the other direction is transcoded already
		hears[s] = []*Stream{peer}
	}
	s.transcodingMixer, peer.transcodingMixer = m, m
	m.set(hears, false)
	s.in.mu.Lock()
	s.in.transcoded = true
	s.in.mu.Unlock()
}

// stopTranscoding ends the transcoding between s and its peer. The caller holds the engine's bridging lock.
func (s *Stream) stopTranscoding(peer *Stream) {
	m := s.transcodingMixer
	if m == nil {
		return
	}
	for _, t := range []*Stream{s, peer} {
		if t == nil {
			continue
		}
		t.transcodingMixer = nil
		t.in.mu.Lock()
		t.in.transcoded, t.in.mixRing = false, nil
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
func (s *Stream) resetTranscoding() {
	s.engine.bridgeMu.Lock()
	defer s.engine.bridgeMu.Unlock()
	if s.transcodingMixer != nil {
		s.stopTranscoding(s.Bridged())
	}
}
