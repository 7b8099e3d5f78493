package media

import "soniq/internal/protocol/media/rtp"

import (
	"soniq/internal/protocol/media/record"
)

// Record starts a recording. A stream can be in one recorder at a time.
func (e *Engine) Record(cfg record.Config) (*record.Recorder, error) { return e.recorders.Record(cfg) }

// Recordable returns the stream as the source of a channel. It returns nil, which is silence, for a nil stream.
func (s *Stream) Recordable() record.Source {
	if s == nil {
		return nil
	}
	return s
}

// ClaimRecording makes ring the only recording ring of the stream's received or sent audio. It returns false if
// another recorder has it.
func (s *Stream) ClaimRecording(ring *rtp.Ring, sent bool) bool {
	if sent {
		v := &s.promptSender
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.recordClaim != nil && v.recordClaim != ring {
			return false
		}
		v.recordClaim = ring
		return true
	}
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	if s.in.recordClaim != nil && s.in.recordClaim != ring {
		return false
	}
	s.in.recordClaim = ring
	return true
}

// ReleaseRecording ends the claim of a recorder.
func (s *Stream) ReleaseRecording(sent bool) {
	if sent {
		s.promptSender.mu.Lock()
		s.promptSender.recordClaim = nil
		s.promptSender.mu.Unlock()
		return
	}
	s.in.mu.Lock()
	s.in.recordClaim = nil
	s.in.mu.Unlock()
}

// FeedRecording lets the stream's received or sent packets into ring from now on; nil keeps them out.
func (s *Stream) FeedRecording(ring *rtp.Ring, sent bool) {
	if sent {
		s.promptSender.mu.Lock()
		s.promptSender.recordRing = ring
		s.promptSender.mu.Unlock()
		return
	}
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	if s.in.closed {
		ring = nil
	}
	s.in.recordRing = ring
}
