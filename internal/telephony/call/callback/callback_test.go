package callback_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/call/callback"
	"soniq/internal/telephony/call/calltest"
)

// callbackFixture is an organisation with a running callback worker. The test decides when scheduled jobs become due.
type callbackFixture struct {
	*calltest.Org
	callbacks *callback.Service
	x         *calltest.Switch
	placed    chan call.Placement
}

func newCallbackFixture(t *testing.T, d *db.DB) *callbackFixture {
	t.Helper()
	b := &callbackFixture{placed: make(chan call.Placement, 10)}
	b.Org = calltest.New(t, d, func(o *calltest.Org) []op.Operation {
		b.callbacks = callback.New(callback.Config{DB: d, Jobs: o.Jobs, Calls: o.Calls})
		o.Calls.Observe(b.callbacks)
		return b.callbacks.Operations()
	})
	b.x = b.AddSwitch()
	b.Exec(`INSERT INTO users (org_id, id, email, first_name, last_name, role, status, dnd, skills, ring_strategy, forward, voicemail,
		recording_mode, created_at, updated_at)
		VALUES ($1, 'usr_1', 'dana@example.com', 'Dana', '', 'agent', 'active', FALSE, '{}', 'all_devices', '{}', '{}', 'inherit', 1, 1)`)
	return b
}

func startCallbacks(t *testing.T, d *db.DB) *callbackFixture {
	t.Helper()
	b := newCallbackFixture(t, d)
	b.Calls.Switch = placementRecorder{b.x, b.placed}
	r := &job.Runner{DB: d, Queue: b.Jobs, Name: callback.JobQueue, Node: "node_a", Log: slog.New(slog.DiscardHandler),
		Options: job.Options{Workers: 2, PerLane: 2, Timeout: time.Minute}}
	b.callbacks.Handle(r)
	b.Must(r.Start(context.Background()))
	t.Cleanup(func() { r.Stop(context.Background()) })
	return b
}

// placementRecorder sends every placed call to a channel.
type placementRecorder struct {
	*calltest.Switch
	placed chan call.Placement
}

func (s placementRecorder) Place(ctx context.Context, p call.Placement) error {
	err := s.Switch.Place(ctx, p)
	s.placed <- p
	return err
}

// nextPlacement waits for the next placed call. Meanwhile it makes the jobs that are scheduled for later due.
func (b *callbackFixture) nextPlacement() call.Placement {
	b.T.Helper()
	tick, late := time.NewTicker(50*time.Millisecond), time.After(2*time.Minute)
	defer tick.Stop()
	for {
		select {
		case p := <-b.placed:
			return p
		case <-tick.C:
			b.Exec(`UPDATE jobs SET run_at = 0 WHERE org_id = $1 AND state = 0`)
		case <-late:
			b.T.Fatal("no call was placed")
		}
	}
}

// endPlacedCall ends a placed call.
func (b *callbackFixture) endPlacedCall(p call.Placement, reason string, answered bool) {
	b.T.Helper()
	e := call.Ended{New: call.New{Org: p.Org, ID: p.ID, Direction: call.Outbound, Source: p.Source, From: p.From, To: p.To,
		StartedAt: time.Now()},
		At: time.Now().Add(time.Second), Outcome: call.Outcome{Reason: reason}}
	if answered {
		e.AnsweredAt = time.Now()
	}
	b.Must(b.Calls.End(context.Background(), e))
}

func TestCallback_RetriedUntilAnswered(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := startCallbacks(t, d)
		made := b.Do("POST", "/callbacks", map[string]any{"to": "+12025550143", "user_id": "usr_1", "reason": "asked on Monday"}).Want(201)
		calltest.Want(t, made.Body, "status", "scheduled")
		calltest.Want(t, made.Body, "max_attempts", 3.0)
		at := "/callbacks/" + made.Text("id")
		p := b.nextPlacement()
		if p.Source != "callback" || p.To != "+12025550143" || p.UserID != "usr_1" || p.Reason != "asked on Monday" {
			t.Errorf("placed %+v", p)
		}
		calltest.Want(t, b.Do("GET", at, nil).Want(200).Body, "status", "dialing")
		b.endPlacedCall(p, "busy", false)
		waiting := b.Do("GET", at, nil).Want(200)
		calltest.Want(t, waiting.Body, "status", "retry_wait")
		if waiting.Text("attempts.0.result") != "busy" || waiting.Text("attempts.0.call_id") != p.ID {
			t.Errorf("after a busy tone: %s", waiting.Bytes)
		}
		second := b.nextPlacement()
		if second.ID == p.ID {
			t.Error("the second attempt is the same call")
		}
		b.endPlacedCall(second, "caller_hangup", true)
		done := b.Do("GET", at, nil).Want(200)
		calltest.Want(t, done.Body, "status", "completed")
		b.Do("DELETE", at, nil).Want(409).Refused("invalid_state")
		list := b.Do("GET", "/callbacks?status=completed&user_id=usr_1", nil).Want(200)
		if len(list.Body["data"].([]any)) != 1 || fmt.Sprint(b.Do("GET", "/callbacks?status=failed", nil).At("data")) != "[]" {
			t.Errorf("list %s", list.Bytes)
		}
	})
}

// A callback to a queue that a client requested has attempts like any other: package queue knows only the callbacks that its callers
// requested.
func TestCallback_RequestedForQueueByAPI(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := startCallbacks(t, d)
		b.Destinations = calltest.Destinations{Parse: func(to string) (string, error) { return to, nil }, Targets: true}
		at := "/callbacks/" + b.Do("POST", "/callbacks", map[string]any{"to": "+12025550143", "queue_id": "que_1"}).Want(201).Text("id")
		p := b.nextPlacement()
		if p.ScriptTarget != "queue:que_1" {
			t.Errorf("placed %+v", p)
		}
		b.endPlacedCall(p, "busy", false)
		calltest.Want(t, b.Do("GET", at, nil).Want(200).Body, "status", "retry_wait")
		b.endPlacedCall(b.nextPlacement(), "caller_hangup", true)
		calltest.Want(t, b.Do("GET", at, nil).Want(200).Body, "status", "completed")
	})
}

func TestCallback_FailsAfterMaxAttempts(t *testing.T) {
	t.Parallel()
	b := startCallbacks(t, dbtest.SQLite(t))
	made := b.Do("POST", "/callbacks", map[string]any{"to": "+12025550143", "user_id": "usr_1", "max_attempts": 1}).Want(201)
	b.endPlacedCall(b.nextPlacement(), "no_answer", false)
	calltest.Want(t, b.Do("GET", "/callbacks/"+made.Text("id"), nil).Body, "status", "failed")
}

func TestCallback_OneAttemptPerNumber(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := startCallbacks(t, d)
		var ids []string
		for range 4 {
			ids = append(ids, b.Do("POST", "/callbacks", map[string]any{"to": "+12025550143", "user_id": "usr_1", "max_attempts": 1}).Want(201).Text("id"))
		}
		for range ids {
			p := b.nextPlacement()
			dialing := b.Do("GET", "/callbacks?status=dialing", nil).Body["data"].([]any)
			if len(dialing) != 1 || len(b.placed) != 0 {
				t.Fatalf("%d calls at once to the same number", len(dialing)+len(b.placed))
			}
			b.endPlacedCall(p, "no_answer", false)
		}
	})
}

func TestCallback_CancelHangsUp(t *testing.T) {
	t.Parallel()
	b := startCallbacks(t, dbtest.SQLite(t))
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	made := b.Do("POST", "/callbacks", map[string]any{"to": "+12025550143", "user_id": "usr_1", "scheduled_at": later}).Want(201)
	b.Do("DELETE", "/callbacks/"+made.Text("id"), nil).Want(204)
	b.Do("DELETE", "/callbacks/"+made.Text("id"), nil).Want(204)
	running := b.Do("POST", "/callbacks", map[string]any{"to": "+12025550144", "user_id": "usr_1"}).Want(201)
	p := b.nextPlacement()
	if p.To != "+12025550144" {
		t.Errorf("the canceled callback was dialled: %+v", p)
	}
	b.Do("DELETE", "/callbacks/"+running.Text("id"), nil).Want(204)
	if b.x.LastCommand() != (call.End{Reason: "callback canceled"}) {
		t.Errorf("the switch was told %v", b.x.Commands)
	}
	b.endPlacedCall(p, "canceled", false)
	calltest.Want(t, b.Do("GET", "/callbacks/"+running.Text("id"), nil).Body, "status", "canceled")
}

func TestCallback_AllViolationsReported(t *testing.T) {
	t.Parallel()
	o := newCallbackFixture(t, dbtest.SQLite(t))
	o.Do("POST", "/callbacks", map[string]any{"to": "+12025550143", "scheduled_at": "2020-01-01T00:00:00Z"}).Refused("validation_failed", "scheduled_at out_of_range", "user_id required")
	o.Do("POST", "/callbacks", map[string]any{"to": "x", "scheduled_at": "tomorrow", "max_attempts": 11, "origin_call_id": "call_none",
		"window_end": "2020-01-01T00:00:00Z"}).Refused("validation_failed", "to invalid_e164", "scheduled_at invalid_time", "max_attempts out_of_range",
		"origin_call_id not_found", "user_id required", "window_end out_of_range")
	o.Do("POST", "/callbacks", map[string]any{"to": "+12025550143", "queue_id": "que_1"}).Want(422).Refused("validation_failed", "queue_id not_found")
	o.Do("GET", "/callbacks/cbk_none", nil).Want(404)
	o.Destinations = calltest.Destinations{Parse: func(string) (string, error) {
		return "", op.Fail("destination_not_allowed", "closed")
	}}
	o.Do("POST", "/callbacks", map[string]any{"to": "+12025550143", "user_id": "usr_1"}).Want(422).Refused("destination_not_allowed")
}
