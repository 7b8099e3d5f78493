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
type eventStore struct {
	mu       sync.Mutex // guards the fields below
	sessions map[string]*sessionEvents
	bytes    int
}

// sessionEvents holds the events of a session, by stream, the oldest stream first.
type sessionEvents struct {
	streams []*streamEvents
	bytes   int
}

// streamEvents holds the events of a stream. first is the position of data[0].
type streamEvents struct {
	id    string
	first int
	data  [][]byte
}

// Limits: streams per session, bytes per session, bytes in total.
const (
	maxStreamsPerSession = 16
	maxSessionBytes      = 1 << 20
	maxTotalBytes        = 64 << 20
)

var _ sdk.EventStore = (*eventStore)(nil)

func newEventStore() *eventStore { return &eventStore{sessions: map[string]*sessionEvents{}} }

// Open adds a stream. If the session has too many, the oldest is dropped.
func (s *eventStore) Open(_ context.Context, session, stream string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.sessions[session]
	if r == nil {
		r = &sessionEvents{}
		s.sessions[session] = r
	}
	if r.find(stream) != nil {
		return nil
	}
	if len(r.streams) >= maxStreamsPerSession {
		oldest := slices.IndexFunc(r.streams, func(t *streamEvents) bool { return t.id != "" }) // "" is the stream that is always open
		s.drop(r, r.streams[oldest], len(r.streams[oldest].data))
		r.streams = slices.Delete(r.streams, oldest, oldest+1)
	}
	r.streams = append(r.streams, &streamEvents{id: stream})
	return nil
}

func (r *sessionEvents) find(stream string) *streamEvents {
	for _, t := range r.streams {
		if t.id == stream {
			return t
		}
	}
	return nil
}

// Append stores an event. Events of a dropped stream are ignored. Beyond the limits the oldest events are dropped.
func (s *eventStore) Append(_ context.Context, session, stream string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.sessions[session]
	if r == nil || r.find(stream) == nil {
		return nil
	}
	t := r.find(stream)
	t.data = append(t.data, data)
	r.bytes += len(data)
	s.bytes += len(data)
	for i := 0; r.bytes > maxSessionBytes && i < len(r.streams); i++ {
		for r.bytes > maxSessionBytes && len(r.streams[i].data) > 0 {
			s.drop(r, r.streams[i], 1)
		}
	}
	for _, other := range s.sessions {
		if s.bytes <= maxTotalBytes {
			break
		}
		for _, t := range other.streams {
			s.drop(other, t, len(t.data))
		}
	}
	return nil
}

// drop deletes the first n events of a stream.
func (s *eventStore) drop(r *sessionEvents, t *streamEvents, n int) {
	for _, d := range t.data[:n] {
		r.bytes -= len(d)
		s.bytes -= len(d)
	}
	t.data = slices.Delete(t.data, 0, n)
	t.first += n
}

// After returns the events of a stream after a position, all or none.
func (s *eventStore) After(_ context.Context, session, stream string, position int) iter.Seq2[[]byte, error] {
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

func (s *eventStore) after(session, stream string, position int) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.sessions[session]
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
func (s *eventStore) SessionClosed(_ context.Context, session string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.sessions[session]; r != nil {
		s.bytes -= r.bytes
		delete(s.sessions, session)
	}
	return nil
}
