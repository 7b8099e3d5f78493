package webhook

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
)

// largeFixture has ten thousand endpoints in two hundred organisations, some of which never answer; fewer with the
// race detector.
type largeFixture struct {
	*fixture
	orgs     []string
	dead     *receiver
	good     *receiver
	mu       sync.Mutex // guards came
	arrivals map[string]int
	hanging  atomic.Int64 // hanging requests at dead endpoints
}

const endpointsPerOrg = 50

// newLargeFixture creates the endpoints. dead reports which of them never answer.
func newLargeFixture(t *testing.T, d *db.DB, dead func(org, n int) bool) *largeFixture {
	t.Helper()
	w := &largeFixture{fixture: newFixture(t, d, nil), arrivals: map[string]int{}}
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	w.dead = newReceiver(t, func(_ int, _ http.ResponseWriter, r *http.Request) {
		w.hanging.Add(1)
		defer w.hanging.Add(-1)
		select {
		case <-over:
		case <-r.Context().Done():
		}
	})
	w.good = newReceiver(t, nil)
	w.good.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.arrivals[r.Header.Get("Webhook-Id")]++
	})
	for i := range townOrgs {
		w.org = newOrg(t, d)
		w.orgs = append(w.orgs, w.org)
		w.addEndpoints(i, dead)
	}
	return w
}

func (w *largeFixture) addEndpoints(org int, dead func(org, n int) bool) {
	w.t.Helper()
	err := w.cfg.DB.Tx(context.Background(), func(tx db.Querier) error {
		for n := range endpointsPerOrg {
			e := &endpoint{Org: w.org, ID: db.NewID("whk"), URL: w.good.URL, Events: []string{"*"}, Status: Active, Timing: enriched,
				TimeoutSeconds: 30, CreatedAt: w.time(), UpdatedAt: w.time()}
			if dead(org, n) {
				e.URL = w.dead.URL
			}
			var err error
			if e.Secret, err = w.cfg.Seal.Seal([]byte(newSecret()), sealAAD(e.Org, e.ID, "secret")); err != nil {
				return err
			}
			if err := insertEndpoint(context.Background(), tx, e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// publishTo publishes an event in an organisation and returns its id.
func (w *largeFixture) publishTo(org string, n int) string {
	w.t.Helper()
	id := db.NewID("evt")
	err := w.cfg.DB.Tx(context.Background(), func(tx db.Querier) error {
		return w.outbox.PublishAs(context.Background(), tx, org, id, event.CallMissed{CallID: fmt.Sprintf("call_%d", n)})
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

func (w *largeFixture) arrived(id string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.arrivals[id]
}

// Of ten thousand endpoints, one or a thousand accept every request and never answer. All others receive their events
// before the first of those requests times out, and continue to do so during the retries.
func TestIsolation_DeadEndpointsAmongTenThousand(t *testing.T) {
	for name, x := range map[string]struct {
		dead  func(org, n int) bool
		alive func(org int) int
	}{
		"one is dead": {func(org, n int) bool { return org == 0 && n == 0 },
			func(org int) int { return map[bool]int{true: endpointsPerOrg - 1, false: endpointsPerOrg}[org == 0] }},
		"a thousand are dead": {func(_, n int) bool { return n%10 == 0 }, func(int) int { return endpointsPerOrg - endpointsPerOrg/10 }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newLargeFixture(t, dbtest.SQLite(t), x.dead)
			w.run()
			start := time.Now()
			ids := make([]string, townOrgs)
			for i, org := range w.orgs {
				ids[i] = w.publishTo(org, i)
			}
			for i, id := range ids {
				eventually(t, "everybody alive has the event", func() bool { return w.arrived(id) == x.alive(i) })
			}
			first := time.Since(start)
			var slowest time.Duration
			for i := range min(20, townOrgs) { // while many requests hang
				org := i * townOrgs / min(20, townOrgs)
				at := time.Now()
				id := w.publishTo(w.orgs[org], 1000+i)
				eventually(t, "one more event is there", func() bool { return w.arrived(id) == x.alive(org) })
				slowest = max(slowest, time.Since(at))
			}
			t.Logf("all in %s, one more to %d endpoints in %s at most, while %d requests hang", first, x.alive(1), slowest, w.hanging.Load())
			if slowest > townPatience {
				t.Errorf("an event took %s while %d requests hang", slowest, w.hanging.Load())
			}
			if n := w.hanging.Load(); n == 0 || n > maxUnproven+claimSlack {
				t.Errorf("%d requests hang, want at most %d", n, maxUnproven)
			}
		})
	}
}

// claimSlack is the number of jobs that may start before the first of them is counted.
const claimSlack = 128
