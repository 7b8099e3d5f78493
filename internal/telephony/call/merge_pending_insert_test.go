package call_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/call/calltest"
)

// blockWriter keeps the database writer busy until letGo is called.
func blockWriter(d *db.DB) (letGo func()) {
	held, hold, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_ = d.Tx(context.Background(), func(db.Querier) error { close(held); <-hold; return nil })
	}()
	<-held
	return func() { close(hold); <-done }
}

// answeredAtOnce returns a call that is answered at once, with the changes of its ringing and its answer.
func (o *testOrg) answeredAtOnce(callee, recording string) (n call.New, changes []call.Change) {
	n = call.New{Org: o.ID, ID: db.NewID("call"), Direction: call.Inbound, Source: "sip", From: "+12025550142", FromName: "Ada", To: "+12025550199",
		StartedAt: o.At, NumberID: "num_1", TrunkID: "trk_1", CallerLeg: db.NewID("leg"), CallerSIP: "sip-1", Metadata: map[string]string{"order": "7"},
		Reference: "ref-1"}
	p := &placedCall{testOrg: o, New: n, next: call.Change{Org: o.ID, ID: n.ID, At: o.At, Revision: 1, Fleeting: true}}
	p.next.Row = call.State{Status: call.Ringing, Stage: "agent", RingingAt: o.At.Add(time.Second), TrunkID: "trk_1", Recording: "off", Consent: "not_required"}
	p.next.Legs = []call.LegState{{ID: callee, Role: "callee", Number: "+12025550199", Status: "ringing", SIPCallID: "sip-2", StartedAt: o.At.Add(time.Second)}}
	p.next.Events = []event.Payload{event.CallRinging{CallID: n.ID}}
	ringing := p.next
	p.prepareAnswer()
	p.next.Legs[1].ID, p.next.Legs[1].StartedAt = callee, o.At.Add(3*time.Second) // the start of the first state counts
	p.next.Recordings[0].ID, p.next.Recordings[0].New.ID, p.next.Row.RecordingID = recording, recording, recording
	return n, []call.Change{ringing, p.next}
}

// storedRows returns all rows of a call as text. The call's id and names are replaced, so that two calls can be
// compared.
func (o *testOrg) storedRows(id string, names ...string) string {
	o.T.Helper()
	var all strings.Builder
	for _, q := range []string{`SELECT * FROM calls WHERE org_id = $1 AND id = $2`, `SELECT * FROM legs WHERE org_id = $1 AND call_id = $2 ORDER BY sip_call_id`,
		`SELECT * FROM recordings WHERE org_id = $1 AND call_id = $2`, `SELECT * FROM call_dialogs WHERE org_id = $1 AND call_id = $2`,
		`SELECT kind, audience, body FROM events WHERE org_id = $1 AND call_id = $2 ORDER BY id`} {
		rows, err := o.DB.Read(context.Background()).Query(context.Background(), q, o.ID, id)
		o.Must(err)
		defer rows.Close()
		columns, err := rows.Columns()
		o.Must(err)
		for rows.Next() {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			o.Must(rows.Scan(values...))
			for i, c := range columns {
				fmt.Fprintf(&all, "%s=%v\n", c, *values[i].(*any))
			}
		}
		o.Must(rows.Err())
	}
	text := strings.ReplaceAll(all.String(), id, "ID")
	for i, name := range names {
		text = strings.ReplaceAll(text, name, fmt.Sprint("name ", i))
	}
	return text
}

func (o *testOrg) beginAsync(ctx context.Context, n call.New) (wait func() error) {
	result := make(chan error, 1)
	o.Calls.BeginAsync(ctx, n, func(err error) { result <- err })
	return func() error { return <-result }
}

// A call and changes that are written together leave the same rows as written one after the other.
func TestPendingInsert_MergesChanges(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o, ctx := newTestOrg(t, d), context.Background()
		one, after := o.answeredAtOnce("leg_1", "rec_1")
		o.Must(o.Calls.Begin(ctx, one))
		for _, c := range after {
			o.Must(o.Calls.Change(ctx, c))
		}
		apart := o.storedRows(one.ID, one.CallerLeg, "leg_1", "rec_1")

		two, after := o.answeredAtOnce("leg_2", "rec_2")
		let := blockWriter(d)
		before := d.Stats().Transactions
		waits := []func() error{o.beginAsync(ctx, two)}
		done := 0
		for _, c := range after {
			c.Done = func() { done++ }
			waits = append(waits, o.Calls.ChangeAsync(ctx, c))
		}
		let()
		for i := range waits {
			o.Must(waits[len(waits)-1-i]()) // in any order
		}
		if together := o.storedRows(two.ID, two.CallerLeg, "leg_2", "rec_2"); together != apart {
			t.Errorf("written together:\n%s\nwritten apart:\n%s", together, apart)
		}
		if n := d.Stats().Transactions - before; d.Name() == "sqlite" && n != 2 || done != 2 { // one of the two kept the writer busy
			t.Errorf("%d transactions, want the beginning with its changes and one other; %d changes done, want 2", n, done)
		}
		after[1].Revision, after[1].Events, after[1].Recordings = 3, nil, nil // a later change is written as usual
		after[1].Row.Muted = true
		o.Must(o.Calls.ChangeAsync(ctx, after[1])())
		calltest.Want(t, o.Get(two.ID), "muted", true)
	})
}

// unencodableEvent is an event that cannot be encoded.
type unencodableEvent struct{ event.CallRinging }

func (unencodableEvent) MarshalJSON() ([]byte, error) { return nil, errors.New("not to be written") }

// A change that cannot be written does not prevent the INSERT of its call.
func TestPendingInsert_SurvivesFailedChange(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o, ctx := newTestOrg(t, d), context.Background()
		n, after := o.answeredAtOnce("leg_1", "rec_1")
		after[1].Events = append(after[1].Events, unencodableEvent{})
		let := blockWriter(d)
		begun := o.beginAsync(ctx, n)
		changed := o.Calls.ChangeAsync(ctx, after[1])
		let()
		if err := changed(); err == nil {
			t.Error("the change is said to be written")
		}
		o.Must(begun())
		calltest.Want(t, o.Get(n.ID), "status", "ringing")
		o.Must(o.Calls.ChangeAsync(ctx, after[0])()) // a retry
		calltest.Want(t, o.Get(n.ID), "ringing_at", db.At(o.At.Add(time.Second)).String())
		if told := o.storedRows(n.ID); strings.Count(told, "kind=call.started") != 1 || strings.Contains(told, "kind=call.answered") {
			t.Errorf("told:\n%s", told)
		}
	})
}
