package webhook

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
)

func TestOrder_PerCallOnTwoNodes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d, nil)
		h.run()
		config := h.cfg
		config.Node = db.NewID("node")
		second := New(config)
		if err := second.Start(context.Background()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { second.Stop(context.Background()) })
		r := newReceiver(t, func(n int, w responseWriter, _ *request) {
			if n == 17 || n == 50 {
				w.WriteHeader(500) // is retried in 5 s, and delays its call until then
			} else if rand.IntN(3) == 0 {
				<-time.After(time.Duration(rand.IntN(3)) * time.Millisecond)
			}
		})
		id, _ := h.create(r.URL, nil)
		const calls, each = 20, 6
		for range each {
			for c := range calls {
				h.publish(numberedEvents(callName(c), 1)...)
			}
		}
		eventually(t, "everything is delivered", func() bool { return len(h.deliveries(id)) == calls*each && h.open() == 0 })
		checkOrder(t, r.list())
	})
}

// gate is a receiver that refuses the events of the call "bad" until it is opened.
func gate(t *testing.T) (r *receiver, open func()) {
	var mu sync.Mutex
	shut := true
	r = newReceiver(t, nil)
	r.answer = func(n int, w responseWriter, _ *request) {
		var e struct{ Data event.CallRecording }
		_ = json.Unmarshal([]byte(r.list()[n-1].body), &e)
		mu.Lock()
		defer mu.Unlock()
		if shut && e.Data.CallID == "call_bad" && e.Data.DurationSeconds == 0 {
			w.WriteHeader(500)
		}
	}
	return r, func() { mu.Lock(); shut = false; mu.Unlock() }
}

func TestOrder_FailingEventDelaysOwnCallOnly(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := newClock()
		h := newFixture(t, d, c.now)
		h.run()
		r, _ := gate(t)
		id, _ := h.create(r.URL, nil)
		h.publish(append(numberedEvents("call_bad", 3), numberedEvents("call_good", 3)...)...)
		eventually(t, "the other call is delivered", func() bool { return h.open() == 3 && h.deliveries(id)[0].Attempts == 1 })
		if r.count() != 4 {
			t.Errorf("%d requests: a later event overtook the failing one", r.count())
		}
		c.set(h.deliveries(id)[0].NextAt.Time) // the second attempt fails too; the third would be after the 30 s
		h.wake()
		eventually(t, "the later events went on", func() bool { return h.open() == 1 })
		if waited := c.now().Sub(start); waited > 30*time.Second {
			t.Errorf("held for %s", waited)
		}
		checkOrder(t, r.list())
	})
}

func TestOrder_OrderedEndpointWaits(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := newClock()
		h := newFixture(t, d, c.now)
		h.run()
		r, open := gate(t)
		id, _ := h.create(r.URL, map[string]any{"ordered": true})
		h.publish(numberedEvents("call_bad", 3)...)
		for n := 1; n <= 4; n++ {
			eventually(t, "the first event failed", func() bool { all := h.deliveries(id); return len(all) == 3 && all[0].Attempts == n })
			c.set(h.deliveries(id)[0].NextAt.Time)
			if n == 4 {
				open()
			}
			h.wake()
		}
		eventually(t, "everything is delivered", func() bool { return h.open() == 0 })
		all := r.list()
		if len(all) != 7 || all[5].Get("X-Service-Sequence") != "2" || all[6].Get("X-Service-Sequence") != "3" {
			t.Errorf("%d requests, want five for the first event, then one each", len(all))
		}
	})
}

func TestIsolation_DeadEndpoint(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d, nil)
		done := make(chan struct{})
		dead := newReceiver(t, func(_ int, _ responseWriter, r *request) {
			select {
			case <-done:
			case <-r.Context().Done():
			}
		})
		good := newReceiver(t, nil)
		deadID, _ := h.create(dead.URL, map[string]any{"timeout_seconds": 30})
		const endpoints, events = 6, 40
		for range endpoints {
			h.create(good.URL, nil)
		}
		for i := range events {
			h.publish(numberedEvents(callName(i), 1)...)
		}
		h.run() // with the backlog there from the start
		t.Cleanup(func() { close(done) })
		eventually(t, "everybody else has everything", func() bool { return h.open() == events })
		if got := good.count(); got != endpoints*events {
			t.Errorf("%d of %d delivered", got, endpoints*events)
		}
		if n := dead.count(); n == 0 || n > maxPerEndpoint {
			t.Errorf("%d requests to the dead endpoint at once, want at most %d", n, maxPerEndpoint)
		}
		for _, d := range h.deliveries(deadID) {
			if d.Attempts != 0 {
				t.Fatal("the dead endpoint timed out before the others were served: nothing is shown")
			}
		}
	})
}

// The node crashes after the receiver got the event and before the result is stored: the same event is sent again.
func TestDelivery_RepeatedAfterCrash(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "soniq.db")
	open := func() *db.DB {
		d, err := db.Open(context.Background(), path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Migrate(context.Background()); err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := open()
	got, answer := make(chan struct{}, 2), make(chan struct{})
	r := newReceiver(t, func(n int, _ responseWriter, _ *request) {
		got <- struct{}{}
		if n == 1 {
			<-answer
		}
	})
	arrives := func(what string) {
		t.Helper()
		select {
		case <-got:
		case <-time.After(2 * time.Minute):
			stacks := &strings.Builder{}
			_ = pprof.Lookup("goroutine").WriteTo(stacks, 1)
			t.Fatalf("%s does not arrive; goroutines:\n%s", what, stacks)
		}
	}
	h := newFixture(t, d, nil)
	id, _ := h.create(r.URL, nil)
	h.publish(event.CallMissed{CallID: "call_1"})
	h.readOnce()
	if err := h.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	arrives("the first attempt")
	_ = d.Close() // from here on nothing is stored
	close(answer)
	dead, gone := context.WithCancel(context.Background()) // does not wait for the database, which does not return
	gone()
	h.Stop(dead)

	again := open()
	defer again.Close()
	config := h.cfg // the same node, restarted
	config.DB, config.Organizations = again, org.New(again, config.Bus, time.Now)
	next := New(config)
	if err := next.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer next.Stop(context.Background())
	arrives("the attempt after the crash")
	h.cfg.DB = again
	eventually(t, "it is written down", func() bool { return h.open() == 0 })
	all := r.list()
	if len(all) != 2 || all[0].Get("Webhook-Id") != all[1].Get("Webhook-Id") || all[0].body != all[1].body ||
		all[0].Get("X-Service-Signature") != all[1].Get("X-Service-Signature") {
		t.Errorf("%d requests: %v", len(all), all)
	}
	if one := h.deliveries(id)[0]; one.Status != succeeded || one.Attempts != 1 {
		t.Errorf("%+v", one)
	}
}
