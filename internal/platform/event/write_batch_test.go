package event_test

import (
	"context"
	"errors"
	"testing"

	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
)

// startReader starts a reader.
func startReader(t *testing.T, r *event.Reader) {
	t.Helper()
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); r.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
}

// newStreamedOutbox returns an outbox on SQLite, an organisation, and a subscription of the event stream.
func newStreamedOutbox(t *testing.T) (d *db.DB, o *event.Outbox, c *collector, org string, live *bus.Subscription) {
	t.Helper()
	d = dbtest.SQLite(t)
	o, c, org = newOutbox(d), &collector{}, newOrg(t, d)
	live = o.Bus.Subscribe(event.Stream, 10)
	t.Cleanup(live.Close)
	return d, o, c, org, live
}

// sequenceOf returns the committed sequence number of the only event of a call; 0 if it has none.
func sequenceOf(t *testing.T, d *db.DB, call string) (n int64) {
	t.Helper()
	must(t, d.Read(ctx).QueryRow(ctx, `SELECT COALESCE(sequence, 0) FROM events WHERE call_id = $1`, call).Scan(&n))
	return n
}

// On SQLite an event is numbered and distributed in the transaction of its change, after all events that waited for
// the reader.
func TestWriteBatch_NumbersInTransaction(t *testing.T) {
	t.Parallel()
	d, o, c, org, live := newStreamedOutbox(t)
	publish(t, o, org, "call_before", 0)
	startReader(t, newReader(o, c))
	if e := (<-live.C).(event.Event); e.CallID != "call_before" || e.Sequence != 1 {
		t.Fatalf("first on the stream: %+v", e)
	}
	must(t, d.Tx(ctx, func(tx db.Querier) error {
		for _, call := range []string{"call_1", "call_2"} {
			if err := o.Publish(ctx, tx, org, event.CallRecording{CallID: call}); err != nil {
				return err
			}
		}
		return nil
	}))
	if one, two := sequenceOf(t, d, "call_1"), sequenceOf(t, d, "call_2"); one != 2 || two != 3 {
		t.Errorf("numbers %d and %d as they are committed, want 2 and 3", one, two)
	}
	for _, call := range []string{"call_1", "call_2"} {
		if e := (<-live.C).(event.Event); e.CallID != call || e.Body == "" || e.OrgID != org {
			t.Errorf("on the stream %+v, want %s", e, call)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) != 3 || c.all[2].Sequence != 3 {
		t.Errorf("handed on: %+v", c.all)
	}
}

// If distribution fails, the event is committed without a number, and distributed later.
func TestWriteBatch_FailedDeliveryCommits(t *testing.T) {
	t.Parallel()
	d, o, c, org, live := newStreamedOutbox(t)
	r := newReader(o, c)
	works := make(chan bool, 100)
	r.CreateDeliveries = func(ctx context.Context, tx db.Querier, batch []event.Event) error {
		if len(batch) > 0 && batch[0].CallID == "call_1" && len(works) == 0 {
			return errors.New("full")
		}
		return c.fan(ctx, tx, batch)
	}
	publish(t, o, org, "call_0", 0)
	startReader(t, r)
	<-live.C // the reader runs
	publish(t, o, org, "call_1", 0)
	if n := sequenceOf(t, d, "call_1"); n != 0 {
		t.Errorf("number %d of what was not handed on", n)
	}
	works <- true
	for i, call := range []string{"call_1", "call_2"} {
		if call == "call_2" { // published after call_1 has its number; otherwise it would be numbered first
			publish(t, o, org, call, 0)
		}
		if e := (<-live.C).(event.Event); e.CallID != call || e.Sequence != int64(i+2) {
			t.Errorf("on the stream %s with number %d, want %s with %d", e.CallID, e.Sequence, call, i+2)
		}
	}
}
