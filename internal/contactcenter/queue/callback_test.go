package queue_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"soniq/internal/contactcenter/queue"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/telephony/call/callback"
)

// storeCallbacks stores callbacks with the call service.
func (h *fixture) storeCallbacks() { h.Observe(callbackStore{h.callbacks}) }

// callbackStore is an observer that stores callbacks.
type callbackStore struct{ callbacks *callback.Service }

func (s callbackStore) CallbackChanged(ctx context.Context, tx db.Querier, c queue.CallbackChange) error {
	return s.callbacks.WriteQueueCallback(ctx, tx, callback.QueueCallback(c))
}

func TestCallback_KeepsPositionAndRetries(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.storeCallbacks()
		id := h.addQueue(`,"callback":{"enabled":true,"max_attempts":2}`)
		names, ids := h.addAgents(t, id, "ada")
		e, behind := h.enter(t, id), h.enter(t, id)
		h.tx(t, func(ctx context.Context, tx db.Querier) error {
			return h.ConvertToCallback(ctx, tx, h.org, e.ID, queue.CallbackRequest{To: "+442079460001"})
		})
		state := func() string {
			t.Helper()
			var status, attempts string
			row := d.Read(h.ctx).QueryRow(h.ctx, `SELECT status, attempts FROM callbacks WHERE org_id = $1 AND queue_id = $2`, h.org, id)
			if err := row.Scan(&status, &attempts); err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%s %d, %s", status, strings.Count(attempts, "call_id"), h.entryStatus(t, e.ID))
		}
		want := func(when, expect string) {
			t.Helper()
			if got := state(); got != expect {
				t.Errorf("%s: %s, want %s", when, got, expect)
			}
		}
		want("accepted", "waiting_agent 0, callback_pending")
		dial := func(callID string) {
			t.Helper()
			p, err := h.Plan(h.ctx, h.org)
			if err != nil || len(p.Assignments) != 1 || p.Assignments[0].Entry.ID != e.ID {
				t.Fatalf("the callback has lost its place: %+v, %v", p, err)
			}
			if _, err := h.DialCallback(h.ctx, p.Assignments[0].Entry, ids[0], time.Minute, callID); err != nil {
				t.Fatal(err)
			}
		}
		ended := func(callID, result string, there bool) {
			t.Helper()
			h.tx(t, func(ctx context.Context, tx db.Querier) error {
				return h.CallbackEnded(ctx, tx, h.org, callID, result, there)
			})
		}
		if got := h.plan(t, names, e, behind); got != "1>ada" {
			t.Errorf("the plan is %s", got)
		}
		dial("call_1")
		want("ada rings", "dialing 1, callback_dialing")
		ended("call_1", "no_answer", false)
		want("ada did not answer", "waiting_agent 0, callback_pending")
		h.advance(5 * time.Second)
		dial("call_2")
		ended("call_2", "busy", true)
		want("the customer was busy", "retry_wait 1, callback_pending")
		if got := h.plan(t, names, e, behind); got != "2>ada" {
			t.Errorf("meanwhile the plan is %s", got)
		}
		h.advance(3 * time.Minute)
		dial("call_3")
		h.tx(t, func(ctx context.Context, tx db.Querier) error { return h.CallbackAnswered(ctx, tx, h.org, "call_3") })
		want("connected", "completed 2, connected")
		ended("call_3", "completed", true)
		want("over", "completed 2, completed")
		if got := h.presence(t, ids[0]); got != "wrap_up" {
			t.Errorf("ada is %s", got)
		}
	})
}

// A number that asks twice keeps the earlier place and has one callback, in either order and spelling.
//
// https://github.com/twilio-labs/callbacks/issues/9
func TestCallback_OncePerNumber(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.storeCallbacks()
		id := h.addQueue(`,"callback":{"enabled":true,"max_attempts":2}`)
		ask := func(e queue.Entry, to string) {
			t.Helper()
			h.tx(t, func(ctx context.Context, tx db.Querier) error {
				return h.ConvertToCallback(ctx, tx, h.org, e.ID, queue.CallbackRequest{To: to})
			})
		}
		open := func() (n int) {
			t.Helper()
			row := d.Read(h.ctx).QueryRow(h.ctx, `SELECT COUNT(*) FROM callbacks WHERE org_id = $1 AND queue_id = $2 AND finished_at IS NULL`, h.org, id)
			if err := row.Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		first, second, third := h.enter(t, id), h.enter(t, id), h.enter(t, id)
		ask(second, "+5213312345678")
		ask(third, "+523312345678") // the other spelling of the number
		if a, b := h.entryStatus(t, second.ID), h.entryStatus(t, third.ID); a != queue.CallbackPending || b != queue.Exited || open() != 1 {
			t.Errorf("asked again from behind: %s, %s, %d callbacks", a, b, open())
		}
		ask(first, "+5213312345678")
		if a, b := h.entryStatus(t, first.ID), h.entryStatus(t, second.ID); a != queue.CallbackPending || b != queue.Exited || open() != 1 {
			t.Errorf("asked again from ahead: %s, %s, %d callbacks", a, b, open())
		}
		other := h.enter(t, id)
		ask(other, "+442079460002")
		if a := h.entryStatus(t, other.ID); a != queue.CallbackPending || open() != 2 {
			t.Errorf("another number: %s, %d callbacks", a, open())
		}
	})
}

func TestCallback_FailsAfterMaxAttempts(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.storeCallbacks()
		id := h.addQueue(`,"callback":{"enabled":true,"max_attempts":1}`)
		ada := h.addAgent(t, "ada", id, "")
		e := h.enter(t, id)
		h.tx(t, func(ctx context.Context, tx db.Querier) error {
			return h.ConvertToCallback(ctx, tx, h.org, e.ID, queue.CallbackRequest{To: "+442079460001"})
		})
		p, err := h.Plan(h.ctx, h.org)
		if err != nil || len(p.Assignments) != 1 {
			t.Fatalf("%+v, %v", p, err)
		}
		if _, err := h.DialCallback(h.ctx, p.Assignments[0].Entry, ada, time.Minute, "call_1"); err != nil {
			t.Fatal(err)
		}
		h.tx(t, func(ctx context.Context, tx db.Querier) error {
			return h.CallbackEnded(ctx, tx, h.org, "call_1", "no_answer", true)
		})
		var status string
		row := d.Read(h.ctx).QueryRow(h.ctx, `SELECT status FROM callbacks WHERE org_id = $1 AND queue_id = $2`, h.org, id)
		if err := row.Scan(&status); err != nil || status != "failed" || h.entryStatus(t, e.ID) != queue.CallbackFailed || h.presence(t, ada) != "available" {
			t.Errorf("%s %v, %s, ada is %s", status, err, h.entryStatus(t, e.ID), h.presence(t, ada))
		}
	})
}

func TestCallback_UnplacedCallWaitsAgain(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.storeCallbacks()
		id := h.addQueue(`,"callback":{"enabled":true}`)
		ada := h.addAgent(t, "ada", id, "")
		e := h.enter(t, id)
		h.tx(t, func(ctx context.Context, tx db.Querier) error {
			return h.ConvertToCallback(ctx, tx, h.org, e.ID, queue.CallbackRequest{To: "+442079460001"})
		})
		e.Status = queue.CallbackPending
		if _, err := h.DialCallback(h.ctx, e, ada, time.Minute, "call_1"); err != nil {
			t.Fatal(err)
		}
		h.advance(15 * time.Second)
		if err := h.Sweep(h.ctx); err != nil {
			t.Fatal(err)
		}
		if h.entryStatus(t, e.ID) != queue.CallbackPending || h.presence(t, ada) != "available" {
			t.Errorf("%s, ada is %s", h.entryStatus(t, e.ID), h.presence(t, ada))
		}
		h.tx(t, func(ctx context.Context, tx db.Querier) error { return h.CancelCallback(ctx, tx, h.org, e.CallID) })
		if h.entryStatus(t, e.ID) != queue.Removed {
			t.Errorf("canceled it is %s", h.entryStatus(t, e.ID))
		}
	})
}
