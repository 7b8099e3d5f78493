package crash_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// hooks is a receiver that answers 500 to one in ten first attempts, and records all events.
type hooks struct {
	*rig.Receiver
	mu       sync.Mutex // guards the fields below
	first    []told     // first successful delivery of each event
	known    map[string]int
	attempts int
	refused  int
}

// told is a received event.
type told struct {
	id, kind, call string
	late           bool // call.ended that came after enrichedWait, when the server no longer waits for a transcript
}

// enrichedWait is the time for which call.ended waits for the transcript.
const enrichedWait = 30 * time.Second

// isLate reports whether an event of an ended call came after that time.
func isLate(e rig.Event) bool {
	text, _ := e.Data["ended_at"].(string)
	ended, err := time.Parse(time.RFC3339, text)
	return err == nil && time.Since(ended) >= enrichedWait
}

func startHooks(c *rig.Client) *hooks {
	h := &hooks{known: map[string]int{}}
	h.Receiver = c.Hook(h.answer)
	return h
}

func (h *hooks) answer(e rig.Event, n int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempts++
	if e.Header.Get("x-service-attempt") == "1" && n%10 == 0 {
		h.refused++
		return 500
	}
	id := e.Header.Get("webhook-id")
	if h.known[id]++; h.known[id] == 1 {
		call, _ := e.Data["call_id"].(string)
		h.first = append(h.first, told{id, e.Event, call, isLate(e)})
	}
	return 200
}

// ofCall returns the events of each call in their order. late contains the calls whose call.ended did not wait for
// the transcript.
func (h *hooks) ofCall() (all map[string][]string, late map[string]bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all, late = map[string][]string{}, map[string]bool{}
	for _, x := range h.first {
		if x.call != "" {
			all[x.call] = append(all[x.call], x.kind)
			late[x.call] = late[x.call] || x.kind == "call.ended" && x.late
		}
	}
	return all, late
}

// count returns the number of different events of a kind.
func (h *hooks) count(kind string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, x := range h.first {
		if x.kind == kind {
			n++
		}
	}
	return n
}

// twice returns the number of events that came more than once.
func (h *hooks) twice() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, times := range h.known {
		if times > 1 {
			n++
		}
	}
	return n
}

// order ranks the events of a call. Events of the same rank may come in either order.
var order = map[string]int{"call.started": 1, "call.answered": 2, "call.missed": 3, "call.recording": 3, "call.transcription": 4, "call.ended": 5}

func inOrder(t *testing.T, call string, kinds []string, late bool) {
	t.Helper()
	if i := slices.Index(kinds, "call.transcription"); late && i == len(kinds)-1 {
		kinds = slices.Insert(slices.Clone(kinds[:i]), i-1, "call.transcription")
	}
	if !slices.IsSortedFunc(kinds, func(a, b string) int { return order[a] - order[b] }) {
		t.Errorf("events of %s came in the order %v", call, kinds)
	}
}
