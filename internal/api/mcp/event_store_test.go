package mcp

import (
	"context"
	"errors"
	"fmt"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// storedEvents returns the events of a stream after a position.
func storedEvents(s *eventStore, session, stream string, position int) (all []string, err error) {
	for d, wrong := range s.After(context.Background(), session, stream, position) {
		if wrong != nil {
			return nil, wrong
		}
		all = append(all, string(d))
	}
	return all, nil
}

func TestEventStore_Replay(t *testing.T) {
	t.Parallel()
	s := newEventStore()
	_ = s.Open(t.Context(), "a", "one")
	for _, text := range []string{"", "first", "second"} {
		_ = s.Append(t.Context(), "a", "one", []byte(text))
	}
	if got, err := storedEvents(s, "a", "one", 0); err != nil || fmt.Sprint(got) != "[first second]" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := storedEvents(s, "a", "one", 2); err != nil || len(got) != 0 {
		t.Errorf("after the last: %q, %v", got, err)
	}
	_ = s.SessionClosed(t.Context(), "a")
	if _, err := storedEvents(s, "a", "one", 0); !errors.Is(err, sdk.ErrEventsPurged) || s.bytes != 0 {
		t.Errorf("of a session that is closed: %v, %d bytes", err, s.bytes)
	}
}

func TestEventStore_Bounded(t *testing.T) {
	t.Parallel()
	s := newEventStore()
	large := make([]byte, 100<<10)
	for session := range 100 {
		name := fmt.Sprint(session)
		_ = s.Open(t.Context(), name, "")
		for i := range 40 {
			stream := fmt.Sprint(i)
			_ = s.Open(t.Context(), name, stream)
			_ = s.Append(t.Context(), name, stream, large)
		}
		if r := s.sessions[name]; len(r.streams) > maxStreamsPerSession || r.bytes > maxSessionBytes || s.bytes > maxTotalBytes ||
			r.find("") == nil {
			t.Fatalf("%d streams, %d bytes, %d in all", len(r.streams), r.bytes, s.bytes)
		}
	}
	if _, err := storedEvents(s, "99", "0", 0); !errors.Is(err, sdk.ErrEventsPurged) {
		t.Errorf("what was forgotten: %v", err)
	}
	if got, err := storedEvents(s, "99", "39", -1); err != nil || len(got) != 1 {
		t.Errorf("the last: %d, %v", len(got), err)
	}
	total := 0
	for _, r := range s.sessions {
		total += r.bytes
	}
	if total != s.bytes {
		t.Errorf("%d bytes are kept, %d counted", total, s.bytes)
	}
}
