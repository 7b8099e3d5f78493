package event_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
)

var ctx = context.Background()

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newOrg(t testing.TB, d *db.DB) string {
	t.Helper()
	id := db.NewID("org")
	const q = `INSERT INTO orgs (id, path, environment, name, plan, status, country, timezone, language, settings, created_at, updated_at)
		VALUES ($1, $2, 'live', 'Test', 'standard', 'active', 'GB', 'UTC', 'en', '{}', 0, 0)`
	must(t, d.Tx(ctx, func(tx db.Querier) error { _, err := tx.Exec(ctx, q, id, "/"+id+"/"); return err }))
	return id
}

func newOutbox(d *db.DB) *event.Outbox {
	return &event.Outbox{DB: d, Bus: bus.New()}
}

func publish(t testing.TB, o *event.Outbox, org, call string, n int) {
	t.Helper()
	must(t, o.DB.Tx(ctx, func(tx db.Querier) error {
		return o.Publish(ctx, tx, org, event.CallRecording{CallID: call, DurationSeconds: n})
	}))
}

// collector implements CreateDeliveries and records the events, including duplicates and gaps.
type collector struct {
	mu  sync.Mutex // guards all
	all []event.Event
}

func (c *collector) fan(_ context.Context, tx db.Querier, batch []event.Event) error {
	kept := slices.Clone(batch)
	db.OnCommit(tx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all = append(c.all, kept...)
	})
	return nil
}

func newReader(o *event.Outbox, c *collector) *event.Reader {
	return &event.Reader{Outbox: o, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), CreateDeliveries: c.fan}
}

func TestPublish_RollbackSendsNothing(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o, c, org := newOutbox(d), &collector{}, newOrg(t, d)
		failed := errors.New("no")
		err := d.Tx(ctx, func(tx db.Querier) error {
			if err := o.Publish(ctx, tx, org, event.CallMissed{CallID: "call_never"}); err != nil {
				return err
			}
			return failed
		})
		if !errors.Is(err, failed) {
			t.Fatal(err)
		}
		publish(t, o, org, "call_1", 0)
		n, err := newReader(o, c).Once(ctx)
		if err != nil || n != 1 || c.all[0].CallID != "call_1" || c.all[0].Sequence != 1 {
			t.Errorf("handed on %d, %v: %+v", n, err, c.all)
		}
	})
}

func TestReader_FailedDeliveriesNumberNothing(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o, c, org := newOutbox(d), &collector{}, newOrg(t, d)
		publish(t, o, org, "call_1", 0)
		r := newReader(o, c)
		r.CreateDeliveries = func(context.Context, db.Querier, []event.Event) error { return errors.New("full") }
		if _, err := r.Once(ctx); err == nil {
			t.Fatal("no error")
		}
		if n, err := newReader(o, c).Once(ctx); err != nil || n != 1 || c.all[0].Sequence != 1 {
			t.Errorf("after the failure: %d, %v", n, err)
		}
	})
}

// With several readers of one outbox each event is distributed once, sequence numbers have no gaps, and the events of
// a call keep their order.
func TestReader_ConcurrentReaders(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o, c, org := newOutbox(d), &collector{}, newOrg(t, d)
		const calls, each = 8, 60
		reading, stop := context.WithCancel(ctx)
		var readers, publishers sync.WaitGroup
		for range 3 {
			readers.Go(func() { newReader(o, c).Run(reading) })
		}
		for i := range calls {
			publishers.Go(func() {
				for n := range each {
					publish(t, o, org, fmt.Sprintf("call_%d", i), n)
				}
			})
		}
		publishers.Wait()
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		late := time.After(2 * time.Minute)
		for done := false; !done; {
			select {
			case <-tick.C:
				c.mu.Lock()
				done = len(c.all) >= calls*each
				c.mu.Unlock()
			case <-late:
				t.Fatalf("%d of %d handed on", len(c.all), calls*each)
			}
		}
		stop()
		readers.Wait()
		slices.SortFunc(c.all, func(a, b event.Event) int { return int(a.Sequence - b.Sequence) })
		next := map[string]int{}
		for i, e := range c.all {
			if e.Sequence != int64(i+1) {
				t.Fatalf("number %d at place %d", e.Sequence, i+1)
			}
			want, _ := event.Encode(event.CallRecording{CallID: e.CallID, DurationSeconds: next[e.CallID]})
			if next[e.CallID]++; e.Body != string(want) {
				t.Fatalf("%s out of order: %s, want %s", e.CallID, e.Body, want)
			}
		}
	})
}

func TestReader_NumbersPerOrganisation(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o, c := newOutbox(d), &collector{}
		a, b := newOrg(t, d), newOrg(t, d)
		for _, org := range []string{a, b, a} {
			publish(t, o, org, "call_"+org, 0)
		}
		if n, err := newReader(o, c).Once(ctx); err != nil || n != 3 {
			t.Fatal(n, err)
		}
		got := map[string][]int64{}
		for _, e := range c.all {
			got[e.OrgID] = append(got[e.OrgID], e.Sequence)
		}
		if !slices.Equal(got[a], []int64{1, 2}) || !slices.Equal(got[b], []int64{1}) {
			t.Errorf("numbers %v", got)
		}
		e, err := event.Get(ctx, d.Read(ctx), a, c.all[0].ID)
		if err != nil || e.Body != c.all[0].Body || e.Sequence != c.all[0].Sequence {
			t.Errorf("Get: %+v, %v", e, err)
		}
		if _, err := event.Get(ctx, d.Read(ctx), b, e.ID); e.OrgID == a && !db.IsNone(err) {
			t.Errorf("another organisation's event: %v", err)
		}
	})
}

func TestReader_PublishesToStream(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	o, org := newOutbox(d), newOrg(t, d)
	live := o.Bus.Subscribe(event.Stream, 10)
	defer live.Close()
	publish(t, o, org, "call_1", 0)
	if _, err := newReader(o, &collector{}).Once(ctx); err != nil {
		t.Fatal(err)
	}
	if e, ok := (<-live.C).(event.Event); !ok || e.Sequence != 1 || e.OrgID != org {
		t.Errorf("on the stream: %+v", e)
	}
}

func TestSweep_OldNumberedEvents(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o, org := newOutbox(d), newOrg(t, d)
		for n := range 3 {
			publish(t, o, org, "call_1", n)
		}
		if _, err := newReader(o, &collector{}).Once(ctx); err != nil {
			t.Fatal(err)
		}
		publish(t, o, org, "call_2", 0) // not distributed yet
		if gone, err := o.Sweep(ctx, time.Now().Add(-time.Minute)); gone != 0 || err != nil {
			t.Errorf("swept %d, %v; want none of the last minute", gone, err)
		}
		if gone, err := o.Sweep(ctx, time.Now().Add(time.Minute)); gone != 3 || err != nil {
			t.Errorf("swept %d, %v; want 3", gone, err)
		}
		var left string
		must(t, d.Read(ctx).QueryRow(ctx, `SELECT call_id FROM events WHERE org_id = $1`, org).Scan(&left))
		if left != "call_2" {
			t.Errorf("left: %s", left)
		}
	})
}
