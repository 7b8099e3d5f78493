package webhook

import (
	"context"
	"sync"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
)

// testClock shows the time that a test sets. Jobs are due when the clock reaches their time.
type testClock struct {
	mu sync.Mutex // guards at
	at time.Time
}

func newClock() *testClock { return &testClock{at: start} }

func (c *testClock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.at }

func (c *testClock) set(t time.Time) { c.mu.Lock(); c.at = t; c.mu.Unlock() }

// wake makes the workers read the clock.
func (h *fixture) wake() {
	h.t.Helper()
	err := h.cfg.DB.Tx(context.Background(), func(tx db.Querier) error {
		return h.cfg.Queue.Hurry(context.Background(), tx, queueName, h.org, "nothing")
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// nextRun returns the time of the next job of a kind; zero if there is none.
func (h *fixture) nextRun(kind string) db.Time {
	h.t.Helper()
	var at db.Time
	const q = `SELECT min(run_at) FROM jobs WHERE kind = $1 AND state = 0`
	if err := h.cfg.DB.Read(context.Background()).QueryRow(context.Background(), q, kind).Scan(&at); err != nil {
		h.t.Fatal(err)
	}
	return at
}

// unnumbered returns the number of events that have no sequence yet.
func (h *fixture) unnumbered() (n int) {
	h.t.Helper()
	const q = `SELECT count(*) FROM events WHERE org_id = $1 AND sequence IS NULL`
	if err := h.cfg.DB.Read(context.Background()).QueryRow(context.Background(), q, h.org).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}

func (h *fixture) deliveries(id string) []*delivery {
	h.t.Helper()
	all, err := listDeliveries(context.Background(), h.cfg.DB.Read(context.Background()),
		`SELECT `+deliveryColumns+` FROM webhook_deliveries WHERE org_id = $1 AND webhook_id = $2 ORDER BY sequence, id`, h.org, id)
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

// The whole retry schedule, through the database, the queue and the network, in simulated time: an event that no
// attempt delivers is tried twelve times over three days, then exhausted.
func TestRetry_ScheduleOverThreeDays(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := newClock()
		h := newFixture(t, d, c.now)
		h.run()
		r := newReceiver(t, status(500))
		id, _ := h.create(r.URL, nil)
		h.publish(event.CallMissed{CallID: "call_1"})
		var at []time.Duration
		for n := 1; n <= 12; n++ {
			eventually(t, "an attempt is written down", func() bool {
				all := h.deliveries(id)
				return len(all) == 1 && all[0].Attempts == n
			})
			at = append(at, c.now().Sub(start))
			if n < 12 {
				next := h.deliveries(id)[0].NextAt
				c.set(next.Add(-time.Second))
				h.wake()
				if r.count() != n {
					t.Fatalf("attempt %d came before its time", n+1)
				}
				c.set(next.Time)
				h.wake()
			}
		}
		if got := h.deliveries(id)[0]; got.Status != exhausted || got.FinishedAt.IsZero() || r.count() != 12 {
			t.Errorf("%+v after %d requests", got, r.count())
		}
		nominal := time.Duration(0)
		for i, pause := range retrySchedule {
			nominal += pause
			if got := at[i+1]; got < nominal*9/10 || got > nominal*11/10+time.Second {
				t.Errorf("attempt %d after %s, want %s ±10 %%", i+2, got, nominal)
			}
		}
		ids := map[string]bool{}
		for i, g := range r.list() {
			ids[g.Get("Webhook-Id")] = true
			if g.Get("X-Service-Attempt") != []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"}[i] {
				t.Errorf("attempt header %s at %d", g.Get("X-Service-Attempt"), i+1)
			}
		}
		if len(ids) != 1 {
			t.Errorf("webhook-id changed between attempts: %v", ids)
		}
		if h.get("/webhooks/"+id).Text("status") != string(Active) {
			t.Error("one failed event made the endpoint failing")
		}
	})
}

// After five consecutive failed events the breaker opens. The other deliveries are held without spending attempts,
// and one probe a minute is sent. When the endpoint recovers, everything is delivered, in order per call.
func TestBreaker_HoldsAndReleasesInOrder(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := newClock()
		h := newFixture(t, d, c.now)
		h.run()
		var mu sync.Mutex
		code := 503
		r := newReceiver(t, nil)
		r.answer = func(_ int, w responseWriter, _ *request) { mu.Lock(); defer mu.Unlock(); w.WriteHeader(code) }
		id, _ := h.create(r.URL, nil)
		changes := h.cfg.Bus.Subscribe(HealthSubject, 10)
		defer changes.Close()
		for i := range maxConsecutiveFailures {
			h.publish(numberedEvents(callName(i), 1)...)
		}
		eventually(t, "the endpoint is failing", func() bool { return h.get("/webhooks/"+id).Text("status") == string(Failing) })
		if change := (<-changes.C).(StatusChange); change.Status != Failing || change.WebhookID != id {
			t.Errorf("announced %+v", change)
		}
		before := r.count()
		for i := range 300 { // more than one release batch
			h.publish(numberedEvents(callName(i%20), 1)...)
		}
		eventually(t, "the others are held", func() bool { return countHeld(h.deliveries(id)) == 300 })
		for n := 1; n <= 3; n++ { // minutes pass; the first five become due and are held too
			c.set(h.nextRun(probeKind).Time)
			h.wake()
			eventually(t, "a probe was sent", func() bool { return r.count() == before+n && h.nextRun(probeKind).After(c.now()) })
		}
		for _, d := range h.deliveries(id)[5:] {
			if d.CountedAttempts != 0 {
				t.Fatalf("a waiting event spent an attempt: %+v", d)
			}
		}
		mu.Lock()
		code = 200
		mu.Unlock()
		c.set(h.nextRun(probeKind).Time)
		h.wake()
		late := numberedEvents(callName(0), 2)
		h.publish(late...) // an event of a call with held deliveries
		eventually(t, "everything is delivered", func() bool { return h.open() == 0 })
		if h.get("/webhooks/"+id).Text("status") != string(Active) {
			t.Error("the endpoint is not active again")
		}
		checkOrder(t, r.list())
		for _, d := range h.deliveries(id) {
			if d.Status != succeeded {
				t.Errorf("%s %s", d.ID, d.Status)
			}
		}
	})
}

func countHeld(all []*delivery) (n int) {
	for _, d := range all {
		if d.Held {
			n++
		}
	}
	return n
}

// An endpoint that fails for five days is disabled. Its held deliveries are kept, and sent when its owner sets it
// active.
func TestBreaker_DisabledAfterFiveDays(t *testing.T) {
	t.Parallel()
	c := newClock()
	h := newFixture(t, dbtest.SQLite(t), c.now)
	h.run()
	r := newReceiver(t, func(n int, w responseWriter, _ *request) {
		if n <= 7 {
			w.WriteHeader(500)
		}
	})
	id, _ := h.create(r.URL, nil)
	for i := range maxConsecutiveFailures {
		h.publish(numberedEvents(callName(i), 1)...)
	}
	eventually(t, "the endpoint is failing", func() bool { return h.get("/webhooks/"+id).Text("status") == string(Failing) })
	h.publish(numberedEvents("call_waiting", 1)...)
	eventually(t, "an event waits", func() bool { return countHeld(h.deliveries(id)) == 1 })
	c.set(start.Add(disableAfter - time.Minute))
	h.wake()
	eventually(t, "a probe failed", func() bool { return r.count() == 6 && h.nextRun(probeKind).After(c.now()) })
	if got := h.get("/webhooks/" + id).Text("status"); got != string(Failing) {
		t.Fatalf("%s a minute before five days", got)
	}
	c.set(h.nextRun(probeKind).Add(time.Second))
	h.wake()
	eventually(t, "it is disabled", func() bool { return h.get("/webhooks/"+id).Text("status") == string(Disabled) })
	if got := h.get("/webhooks/" + id).Text("disabled_reason"); got == "" {
		t.Error("no reason is given")
	}
	h.publish(numberedEvents("call_not_kept", 1)...)
	eventually(t, "the event was handed on", func() bool { return h.unnumbered() == 0 })
	h.api.Do(admin(h), "PATCH", "/webhooks/"+id, map[string]any{"status": "active"}).Want(200)
	eventually(t, "what waited is delivered", func() bool { return h.open() == 0 })
	if n := len(h.deliveries(id)); n != 6 {
		t.Errorf("%d deliveries, want the 6 from before it was disabled", n)
	}
	w := h.get("/webhooks/" + id)
	if w.Text("status") != string(Active) || w.At("disabled_reason") != nil || w.At("health.consecutive_failures") != 0.0 {
		t.Errorf("webhook %s", w.Bytes)
	}
}
