package mcp

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// eventStore keeps the latest events of session streams, for clients that reconnect with Last-Event-ID (revisions
// 2025-03-26 to 2025-11-25). If the requested events were dropped, it returns sdk.ErrEventsPurged. It is safe for
// concurrent use.
type replays struct {
	mu    sync.Mutex // guards the fields below
	all   map[string]*replay
	bytes int
}

// sessionEvents holds the events of a session, by stream, the oldest stream first.
type replay struct {
	tracks []*track
	bytes  int
}

// streamEvents holds the events of a stream. first is the position of data[0].
type track struct {
	id    string
	first int
	data  [][]byte
}

// Limits: streams per session, bytes per session, bytes in total.
const (
	mostTracks   = 16
	sessionBytes = 1 << 20
	allBytes     = 64 << 20
)

var _ sdk.EventStore = (*replays)(nil)

func newReplays() *replays { return &replays{all: map[string]*replay{}} }

// Open adds a stream. If the session has too many, the oldest is dropped.
func (s *replays) Open(_ context.Context, session, stream string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.all[session]
	if r == nil {
		r = &replay{}
		s.all[session] = r
	}
	if r.find(stream) != nil {
		return nil
	}
	if len(r.tracks) >= mostTracks {
		oldest := slices.IndexFunc(r.tracks, func(t *track) bool { return t.id != "" }) // "" is the stream that is always open
		s.forget(r, r.tracks[oldest], len(r.tracks[oldest].data))
		r.tracks = slices.Delete(r.tracks, oldest, oldest+1)
	}
	r.tracks = append(r.tracks, &track{id: stream})
	return nil
}

func (r *replay) find(stream string) *track {
	for _, t := range r.tracks {
		if t.id == stream {
			return t
		}
	}
	return nil
}

// Append stores an event. Events of a dropped stream are ignored. Beyond the limits the oldest events are dropped.
func (s *replays) Append(_ context.Context, session, stream string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.all[session]
	if r == nil || r.find(stream) == nil {
		return nil
	}
	t := r.find(stream)
	t.data = append(t.data, data)
	r.bytes += len(data)
	s.bytes += len(data)
	for i := 0; r.bytes > sessionBytes && i < len(r.tracks); i++ {
		for r.bytes > sessionBytes && len(r.tracks[i].data) > 0 {
			s.forget(r, r.tracks[i], 1)
		}
	}
	for _, other := range s.all {
		if s.bytes <= allBytes {
			break
		}
		for _, t := range other.tracks {
			s.forget(other, t, len(t.data))
		}
	}
	return nil
}

// drop deletes the first n events of a stream.
func (s *replays) forget(r *replay, t *track, n int) {
	for _, d := range t.data[:n] {
		r.bytes -= len(d)
		s.bytes -= len(d)
	}
	t.data = slices.Delete(t.data, 0, n)
	t.first += n
}

// After returns the events of a stream after a position, all or none.
func (s *replays) After(_ context.Context, session, stream string, position int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		kept, err := s.after(session, stream, position)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, d := range kept {
			if !yield(d, nil) {
				return
			}
		}
	}
}

func (s *replays) after(session, stream string, position int) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.all[session]
	if r == nil || r.find(stream) == nil {
		return nil, fmt.Errorf("no events of this stream are stored: %w", sdk.ErrEventsPurged)
	}
	t := r.find(stream)
	if position+1 < t.first {
		return nil, fmt.Errorf("event %d is not kept: %w", position+1, sdk.ErrEventsPurged)
	}
	return slices.Clone(t.data[min(position+1-t.first, len(t.data)):]), nil
}

// SessionClosed deletes the events of a session.
func (s *replays) SessionClosed(_ context.Context, session string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.all[session]; r != nil {
		s.bytes -= r.bytes
		delete(s.all, session)
	}
	return nil
}
