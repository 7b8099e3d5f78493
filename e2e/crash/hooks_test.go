package crash_test

import (
	"slices"
	"sync"
	"testing"

	"soniq/e2e/rig"
)

// hooks is a receiver that answers 500 to one in ten first attempts, and remembers all.
type hooks struct {
	*rig.Receiver
	mu       sync.Mutex // guards the fields below
	first    []told     // first successful delivery of each event
	known    map[string]int
	attempts int
	refused  int
}

// told is an event as it came.
type told struct {
	id, kind, call string
	enriched       bool
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
		enriched, _ := e.Data["enriched"].(bool)
		h.first = append(h.first, told{id, e.Event, call, enriched})
	}
	return 200
}

// ofCall is what was told of each call, in its order.
func (h *hooks) ofCall() map[string][]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[string][]string{}
	for _, x := range h.first {
		if x.call != "" {
			all[x.call] = append(all[x.call], x.kind)
		}
	}
	return all
}

// count is how many different events of a kind came.
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

// twice is how many events came more than once.
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

// order is how events of one call follow each other; those of the same rank may come either way.
var order = map[string]int{"call.started": 1, "call.answered": 2, "call.missed": 3, "call.recording": 3, "call.transcription": 4, "call.ended": 5}

func inOrder(t *testing.T, call string, kinds []string) {
	t.Helper()
	if !slices.IsSortedFunc(kinds, func(a, b string) int { return order[a] - order[b] }) {
		t.Errorf("events of %s came in the order %v", call, kinds)
	}
}
