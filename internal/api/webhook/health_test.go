package webhook

import (
	"strings"
	"sync/atomic"
	"testing"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
)

// An endpoint that subscribes to all kinds does not receive events about its own health: they are for the live
// stream.
func TestHealth_PublishedToStreamOnly(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := newClock()
		h := newFixture(t, d, c.now)
		h.run()
		var code atomic.Int64
		code.Store(503)
		r := newReceiver(t, nil)
		r.answer = func(_ int, w responseWriter, _ *request) { w.WriteHeader(int(code.Load())) }
		id, _ := h.create(r.URL, map[string]any{"events": []string{"*"}})
		news := h.cfg.Bus.Subscribe(event.Stream, 1000)
		defer news.Close()
		var told []string
		health := func() {
			for len(news.C) > 0 {
				if e := (<-news.C).(event.Event); e.Kind == "webhook.health" && strings.Contains(e.Body, id) {
					told = append(told, e.Body)
				}
			}
		}
		for i := range maxConsecutiveFailures {
			h.publish(numberedEvents(callName(i), 1)...)
		}
		eventually(t, "the stream is told that the endpoint fails", func() bool { health(); return len(told) == 1 })
		code.Store(200)
		eventually(t, "the stream is told that it works again", func() bool {
			if at := h.nextRun(probeKind); at.After(c.now()) {
				c.set(at.Time)
				h.wake()
			}
			health()
			return len(told) == 2
		})
		if !strings.Contains(told[0], `"status":"failing","consecutive_failures":5`) || !strings.Contains(told[1], `"status":"active","consecutive_failures":0`) {
			t.Errorf("told %v", told)
		}
		eventually(t, "everything is delivered", func() bool { return h.open() == 0 })
		for _, x := range h.deliveries(id) {
			if x.Kind == "webhook.health" {
				t.Errorf("the endpoint was sent %+v", x)
			}
		}
	})
}
