package hooks_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// The server is killed between a delivery attempt and its record: the receiver has the event and would have answered
// 200. After the restart the event is delivered again, with the same webhook-id, bytes and digest, and is recorded as
// delivered.
func TestDelivery_KilledBeforeRecord(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Flags: []string{"--transcriber", "off"}}, func(t *testing.T, s *rig.Server) {
		c := s.Org("test")
		var mu sync.Mutex
		var heads []http.Header
		var bodies []string
		arrived, answer := make(chan int, 10), make(chan struct{})
		receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			mu.Lock()
			heads, bodies = append(heads, r.Header), append(bodies, string(b))
			n := len(heads)
			mu.Unlock()
			arrived <- n
			if n == 1 {
				<-answer
			}
		}))
		defer receiver.Close()
		var w struct{ ID string }
		c.Want(201, "POST", "/webhooks", map[string]any{"url": receiver.URL, "events": []string{"call.ended"}}, &w)
		c.Want(202, "POST", "/sandbox/events/trigger", map[string]any{"event": "call.ended"}, nil)
		<-arrived
		s.Kill()
		close(answer) // the server was killed, so the response is lost
		s.Start()
		var d delivery
		rig.Until(t, "the event is delivered", 60*time.Second, func() bool { d = only(c, w.ID); return d.Status == "succeeded" })
		mu.Lock()
		defer mu.Unlock()
		if len(heads) != 2 {
			t.Fatalf("%d requests, want 2", len(heads))
		}
		for _, name := range []string{"webhook-id", "x-service-signature", "x-service-delivery", "x-service-sequence", "x-service-event"} {
			if heads[0].Get(name) == "" || heads[0].Get(name) != heads[1].Get(name) {
				t.Errorf("%s was %q, then %q", name, heads[0].Get(name), heads[1].Get(name))
			}
		}
		if bodies[0] != bodies[1] || bodies[1] != d.Body || d.EventID != heads[0].Get("webhook-id") {
			t.Errorf("%s, then %s; logged %+v", bodies[0], bodies[1], d)
		}
	})
}
