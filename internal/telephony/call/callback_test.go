package call_test

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
)

// callbackFixture is a testOrg with a running callback worker. The test decides when scheduled jobs become due.
type callbackFixture struct {
	*testOrg
	x      *fakeSwitch
	placed chan call.Placement
}

func startCallbacks(t *testing.T, d *db.DB) *callbackFixture {
	t.Helper()
	o, x := newOrgWithSwitch(t, d)
	b := &callbackFixture{testOrg: o, x: x, placed: make(chan call.Placement, 10)}
	o.calls.Switch = placementRecorder{x, b.placed}
	r := &job.Runner{DB: d, Queue: o.calls.Jobs, Name: call.CallbackQueue, Node: "node_a", Log: slog.New(slog.DiscardHandler),
		Options: job.Options{Workers: 2, PerLane: 2, Timeout: time.Minute}}
	o.calls.HandleCallbacks(r)
	o.must(r.Start(context.Background()))
	t.Cleanup(func() { r.Stop(context.Background()) })
	return b
}

// placementRecorder sends every placed call to a channel.
type placementRecorder struct {
	*fakeSwitch
	placed chan call.Placement
}

func (s placementRecorder) Place(ctx context.Context, p call.Placement) error {
	err := s.fakeSwitch.Place(ctx, p)
	s.placed <- p
	return err
}

// nextPlacement waits for the next placed call. Meanwhile it makes the jobs that are scheduled for later due.
func (b *callbackFixture) nextPlacement() call.Placement {
	b.t.Helper()
	tick, late := time.NewTicker(50*time.Millisecond), time.After(20*time.Second)
	defer tick.Stop()
	for {
		select {
		case p := <-b.placed:
			return p
		case <-tick.C:
			b.exec(`UPDATE jobs SET run_at = 0 WHERE org_id = $1 AND state = 0`)
		case <-late:
			b.t.Fatal("no call was placed")
		}
	}
}

// endPlacedCall ends a placed call.
func (b *callbackFixture) endPlacedCall(p call.Placement, reason string, answered bool) {
	b.t.Helper()
	e := call.Ended{New: call.New{Org: p.Org, ID: p.ID, Direction: call.Outbound, Source: p.Source, From: p.From, To: p.To, StartedAt: time.Now()},
		At: time.Now().Add(time.Second), Outcome: call.Outcome{Reason: reason}}
	if answered {
		e.AnsweredAt = time.Now()
	}
	b.must(b.calls.End(context.Background(), e))
}

func TestCallback_RetriedUntilAnswered(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := startCallbacks(t, d)
		made := b.do("POST", "/callbacks", map[string]any{"to": "+12025550143", "user_id": "usr_1", "reason": "asked on Monday"}).Want(201)
		want(t, made.Body, "status", "scheduled")
		want(t, made.Body, "max_attempts", 3.0)
		at := "/callbacks/" + made.Text("id")
		p := b.nextPlacement()
		if p.Source != "callback" || p.To != "+12025550143" || p.UserID != "usr_1" || p.Reason != "asked on Monday" {
			t.Errorf("placed %+v", p)
		}
		want(t, b.do("GET", at, nil).Want(200).Body, "status", "dialing")
		b.endPlacedCall(p, "busy", false)
		waiting := b.do("GET", at, nil).Want(200)
		want(t, waiting.Body, "status", "retry_wait")
		if waiting.Text("attempts.0.result") != "busy" || waiting.Text("attempts.0.call_id") != p.ID {
			t.Errorf("after a busy tone: %s", waiting.Bytes)
		}
		second := b.nextPlacement()
		if second.ID == p.ID {
			t.Error("the second attempt is the same call")
		}
		b.endPlacedCall(second, "caller_hangup", true)
		done := b.do("GET", at, nil).Want(200)
		want(t, done.Body, "status", "completed")
		b.do("DELETE", at, nil).Want(409).Refused("invalid_state")
		list := b.do("GET", "/callbacks?status=completed&user_id=usr_1", nil).Want(200)
		if len(list.Body["data"].([]any)) != 1 || fmt.Sprint(b.do("GET", "/callbacks?status=failed", nil).At("data")) != "[]" {
			t.Errorf("list %s", list.Bytes)
		}
	})
}

// A callback to a queue that a client requested has attempts like any other: package queue knows only the callbacks that its callers requested.
func TestCallback_RequestedForQueueByAPI(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := startCallbacks(t, d)
		b.calls.Destinations = fakeDestinations{parse: func(to string) (string, error) { return to, nil }, targets: true}
		at := "/callbacks/" + b.do("POST", "/callbacks", map[string]any{"to": "+12025550143", "queue_id": "que_1"}).Want(201).Text("id")
		p := b.nextPlacement()
		if p.ScriptTarget != "queue:que_1" {
			t.Errorf("placed %+v", p)
		}
		b.endPlacedCall(p, "busy", false)
		want(t, b.do("GET", at, nil).Want(200).Body, "status", "retry_wait")
		b.endPlacedCall(b.nextPlacement(), "caller_hangup", true)
		want(t, b.do("GET", at, nil).Want(200).Body, "status", "completed")
	})
}

func TestCallback_FailsAfterMaxAttempts(t *testing.T) {
	t.Parallel()
	b := startCallbacks(t, dbtest.SQLite(t))
	made := b.do("POST", "/callbacks", map[string]any{"to": "+12025550143", "user_id": "usr_1", "max_attempts": 1}).Want(201)
	b.endPlacedCall(b.nextPlacement(), "no_answer", false)
	want(t, b.do("GET", "/callbacks/"+made.Text("id"), nil).Body, "status", "failed")
}

func TestCallback_OneAttemptPerNumber(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := startCallbacks(t, d)
		var ids []string
		for range 4 {
			ids = append(ids, b.do("POST", "/callbacks", map[string]any{"to": "+12025550143", "user_id": "usr_1", "max_attempts": 1}).Want(201).Text("id"))
		}
		for range ids {
			p := b.nextPlacement()
			dialing := b.do("GET", "/callbacks?status=dialing", nil).Body["data"].([]any)
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
	made := b.do("POST", "/callbacks", map[string]any{"to": "+12025550143", "user_id": "usr_1", "scheduled_at": later}).Want(201)
	b.do("DELETE", "/callbacks/"+made.Text("id"), nil).Want(204)
	b.do("DELETE", "/callbacks/"+made.Text("id"), nil).Want(204)
	running := b.do("POST", "/callbacks", map[string]any{"to": "+12025550144", "user_id": "usr_1"}).Want(201)
	p := b.nextPlacement()
	if p.To != "+12025550144" {
		t.Errorf("the canceled callback was dialled: %+v", p)
	}
	b.do("DELETE", "/callbacks/"+running.Text("id"), nil).Want(204)
	if b.x.lastCommand() != (call.End{Reason: "callback canceled"}) {
		t.Errorf("the switch was told %v", b.x.commands)
	}
	b.endPlacedCall(p, "canceled", false)
	want(t, b.do("GET", "/callbacks/"+running.Text("id"), nil).Body, "status", "canceled")
}

func TestCallback_AllViolationsReported(t *testing.T) {
	t.Parallel()
	o, _ := newOrgWithSwitch(t, dbtest.SQLite(t))
	o.do("POST", "/callbacks", map[string]any{"to": "+12025550143", "scheduled_at": "2020-01-01T00:00:00Z"}).Refused("validation_failed", "scheduled_at out_of_range", "user_id required")
	o.do("POST", "/callbacks", map[string]any{"to": "x", "scheduled_at": "tomorrow", "max_attempts": 11, "origin_call_id": "call_none",
		"window_end": "2020-01-01T00:00:00Z"}).Refused("validation_failed", "to invalid_e164", "scheduled_at invalid_time", "max_attempts out_of_range",
		"origin_call_id not_found", "user_id required", "window_end out_of_range")
	o.do("POST", "/callbacks", map[string]any{"to": "+12025550143", "queue_id": "que_1"}).Want(422).Refused("validation_failed", "queue_id not_found")
	o.do("GET", "/callbacks/cbk_none", nil).Want(404)
	o.calls.Destinations = fakeDestinations{parse: func(string) (string, error) { return "", op.Fail("destination_not_allowed", "closed") }}
	o.do("POST", "/callbacks", map[string]any{"to": "+12025550143", "user_id": "usr_1"}).Want(422).Refused("destination_not_allowed")
}
