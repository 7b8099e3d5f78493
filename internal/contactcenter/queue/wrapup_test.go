package queue_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/internal/contactcenter/queue"
	"soniq/internal/platform/access"
	"soniq/internal/platform/blob"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/call/cdr"
	"soniq/internal/telephony/call/disposition"
)

const twoCodes = `"dispositions":[{"code":"sale","label":"Sold"},{"code":"none","label":"Not interested"}]`

// newDispositions returns a fixture whose API has calls, call detail records and dispositions too.
func newDispositions(t *testing.T, d *db.DB) *fixture {
	t.Helper()
	h := newFixture(t, d)
	h.agents.Observe(h.Service)
	outcomes := disposition.New(disposition.Config{DB: d, Queues: h.Service, Clock: clock.Func(h.now)})
	outcomes.Observe(h.Service)
	files, err := blob.OpenDir(t.TempDir(), blob.Alone{})
	if err != nil {
		t.Fatal(err)
	}
	records := cdr.New(cdr.Config{DB: d, Jobs: h.jobs, Files: files, Records: h.calls, Clock: clock.Func(h.now)})
	h.server = optest.New(t, d, slices.Concat(h.Operations(), h.users.Operations(), h.agents.Operations(), h.calls.Operations(),
		outcomes.Operations(), records.Operations())...)
	return h
}

// serve has an agent answer a call of a queue, and returns the id of the call and its entry.
func (h *fixture) serve(t *testing.T, queueID, agent string) (call.New, string) {
	t.Helper()
	n := call.New{Org: h.org, ID: db.NewID("call"), Direction: call.Inbound, Source: "inbound", From: "+442079460001", To: "+442079460002",
		StartedAt: h.now(), CallerSIP: "x"}
	if err := h.calls.Begin(h.ctx, n); err != nil {
		t.Fatal(err)
	}
	var e queue.Entry
	h.tx(t, func(ctx context.Context, tx db.Querier) (err error) {
		if e, err = h.Enter(ctx, tx, queue.Caller{Org: h.org, QueueID: queueID, CallID: n.ID, From: n.From}); err != nil {
			return err
		}
		return h.calls.EnterQueue(ctx, tx, h.org, n.ID, queueID)
	})
	o := h.offer(t, e, agent)[0]
	h.tx(t, func(ctx context.Context, tx db.Querier) error {
		_, err := h.AnswerOffer(ctx, tx, h.org, o.ID)
		return err
	})
	return n, e.ID
}

// hangUp ends the conversation of a call, and the call.
func (h *fixture) hangUp(t *testing.T, n call.New, entry string) {
	t.Helper()
	h.tx(t, func(ctx context.Context, tx db.Querier) error {
		return h.CompleteEntry(ctx, tx, h.org, entry, time.Minute)
	})
	err := h.calls.End(h.ctx, call.Ended{New: n, At: h.now(), Outcome: call.Outcome{Reason: "caller_hangup"}})
	if err != nil {
		t.Fatal(err)
	}
}

func (h *fixture) dispose(id, body string) *optest.Answer {
	return h.do("PUT", "/calls/"+id+"/disposition", body)
}

// wrapUpSeconds returns the length of the wrap-up after a call in seconds, from its only offer.
func (h *fixture) wrapUpSeconds(t *testing.T, id string) int {
	t.Helper()
	all, err := h.OffersOfCalls(h.ctx, h.d.Read(h.ctx), h.org, []string{id})
	if err != nil || len(all[id]) != 1 {
		t.Fatalf("offers %v, %v", all, err)
	}
	return all[id][0].WrapUp
}

func TestDisposition_CodesOfQueue(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newDispositions(t, d)
		id := h.addQueue(`,` + twoCodes)
		ada := h.addAgent(t, "ada", id, "")
		n, entry := h.serve(t, id, ada)
		a := h.dispose(n.ID, `{"code":"bought"}`)
		a.Refused("validation_failed", "code not_declared")
		if !strings.Contains(string(a.Bytes), "sale, none") {
			t.Errorf("the refusal does not name the codes: %s", a.Bytes)
		}
		if got := h.dispose(n.ID, `{"code":"none"}`).Want(200); got.Text("label") != "Not interested" || got.Text("call_id") != n.ID {
			t.Errorf("during the call: %s", got.Bytes)
		}
		h.hangUp(t, n, entry)
		if got := h.dispose(n.ID, `{"code":"sale"}`).Want(200); got.Text("code") != "sale" || got.Text("label") != "Sold" {
			t.Errorf("after the call: %s", got.Bytes)
		}
		h.wantRecords(t, n.ID, "sale")
		events := h.do("GET", "/calls/"+n.ID+"/events", nil).Want(200)
		if !strings.Contains(string(events.Bytes), `"kind":"api.disposition"`) || !strings.Contains(string(events.Bytes), `"code":"sale"`) ||
			!strings.Contains(string(events.Bytes), `"id":"key_test"`) {
			t.Errorf("timeline %s", events.Bytes)
		}
		if got := h.dispose(n.ID, `{"code":null}`).Want(200); got.At("code") != nil || got.At("label") != nil {
			t.Errorf("removed: %s", got.Bytes)
		}
		if got := h.do("GET", "/calls/"+n.ID, nil).Want(200); got.At("disposition") != nil {
			t.Errorf("removed: %s", got.Bytes)
		}
		h.do("DELETE", "/queues/"+id, nil).Want(204)
		h.dispose(n.ID, `{"code":"bought"}`).Refused("validation_failed", "code not_declared") // also of a removed queue
	})
}

// wantRecords expects a disposition in the call, its record, the lists with their filters and totals, and CSV.
func (h *fixture) wantRecords(t *testing.T, id, code string) {
	t.Helper()
	if got := h.do("GET", "/calls/"+id, nil).Want(200).Text("disposition"); got != code {
		t.Errorf("the call has the disposition %q", got)
	}
	if got := h.do("GET", "/cdr/"+id, nil).Want(200).Text("disposition"); got != code {
		t.Errorf("the record has the disposition %q", got)
	}
	for _, path := range []string{"/calls", "/cdr"} {
		for filter, want := range map[string]int{code: 1, "other": 0} {
			a := h.do("GET", path+"?include_total=true&disposition="+filter, nil).Want(200)
			if data, _ := a.At("data").([]any); len(data) != want || a.At("total") != float64(want) {
				t.Errorf("%s with disposition %s: %s", path, filter, a.Bytes)
			}
		}
	}
	csv := h.server.Do(optest.Admin(h.org), "GET", "/cdr", nil, "Accept: text/csv").Want(200)
	if !strings.Contains(string(csv.Bytes), ","+code+",") {
		t.Errorf("CSV %s", csv.Bytes)
	}
}

func TestDisposition_WithoutDeclaredCodes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newDispositions(t, d)
		free := h.newCall(t)
		if got := h.dispose(free, `{"code":"Rückruf später"}`).Want(200); got.Text("label") != "Rückruf später" {
			t.Errorf("got %s", got.Bytes)
		}
		id := h.addQueue("")
		n, _ := h.serve(t, id, h.addAgent(t, "ada", id, ""))
		h.dispose(n.ID, `{"code":"anything"}`).Want(200)
		for _, wrong := range []string{`""`, `" x"`, `"x\ny"`, `"` + strings.Repeat("x", 65) + `"`} {
			h.dispose(free, `{"code":`+wrong+`}`).Refused("validation_failed", "code invalid_value")
		}
		h.dispose(free, `{}`).Refused("validation_failed", "code required")
		h.dispose("call_none", `{"code":"x"}`).Want(404)
		stranger := optest.Admin(db.NewID("org"))
		h.server.Do(stranger, "PUT", "/calls/"+free+"/disposition", `{"code":"x"}`).Want(404)
		reader := optest.Admin(h.org)
		reader.Scopes = []access.Scope{access.CallsRead}
		h.server.Do(reader, "PUT", "/calls/"+free+"/disposition", `{"code":"x"}`).Want(403)
		for body, want := range map[string]string{
			`[{"code":"","label":"A"}]`:                               "dispositions[0].code invalid_value",
			`[{"code":"a","label":" "}]`:                              "dispositions[0].label invalid_length",
			`[{"code":"a","label":"A"},{"code":"a","label":"Again"}]`: "dispositions[1].code duplicate",
		} {
			h.do("PATCH", "/queues/"+id, `{"dispositions":`+body+`}`).Refused("validation_failed", want)
		}
	})
}

// TestAgentLeft_WrapUpWithEndOfLeg proves that the wrap-up of an agent begins in the transaction that stores the end of the agent's leg,
// when the call goes on after a transfer. The end of a colleague's leg in the call begins none, nor that of an agent who answered and hung
// up before they were connected: the answer is reverted then, and the caller waits again.
//
// https://github.com/asterisk/asterisk/issues/1006
func TestAgentLeft_WrapUpWithEndOfLeg(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newDispositions(t, d)
		id := h.addQueue(`,"wrap_up_seconds":30`)
		ada, bob := h.addAgent(t, "ada", id, ""), h.addAgent(t, "bob", id, "")
		n, entry := h.serve(t, id, ada)
		at, revision := h.now(), 0
		write := func(user, status string, ended time.Time, work *call.Work) {
			t.Helper()
			revision++
			leg := call.LegState{ID: "leg_" + user, Role: "agent", UserID: user, Number: "101", Status: status, SIPCallID: user,
				StartedAt: at, AnsweredAt: at, EndedAt: ended, Work: work}
			err := h.calls.Change(h.ctx, call.Change{Org: h.org, ID: n.ID, Revision: revision, At: at,
				Row: call.State{Status: call.InProgress, AnsweredAt: at}, Legs: []call.LegState{leg}})
			if err != nil {
				t.Fatal(err)
			}
		}
		write(ada, "answered", time.Time{}, nil)
		write(bob, "ended", at, &call.Work{})
		if got := h.entryStatus(t, entry); got != queue.Connected {
			t.Fatalf("a colleague has left; the entry is %s", got)
		}
		write(ada, "ended", at, nil)
		if got := h.entryStatus(t, entry); got != queue.Connected {
			t.Fatalf("the agent hung up before they were connected; the entry is %s", got)
		}
		write(ada, "ended", at, &call.Work{})
		if h.entryStatus(t, entry) != queue.Completed || h.presence(t, ada) != "wrap_up" {
			t.Errorf("the agent has left; the entry is %s, the agent %s", h.entryStatus(t, entry), h.presence(t, ada))
		}
	})
}

// A required disposition ends the wrap-up, not before its usual time; the choice to be available does not.
func TestDispositionRequired_WrapUpLasts(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newDispositions(t, d)
		id := h.addQueue(`,"wrap_up_seconds":30,"disposition_required":true,` + twoCodes)
		ada := h.addAgent(t, "ada", id, "")
		n, entry := h.serve(t, id, ada)
		h.hangUp(t, n, entry)
		h.advance(10 * time.Minute)
		if a := h.do("GET", "/agents/"+ada, nil).Want(200); a.Text("presence.status") != "wrap_up" || a.Text("wrap_up_call_id") != n.ID {
			t.Fatalf("after the usual time: %s", a.Bytes)
		}
		h.do("PUT", "/agents/"+ada+"/presence", `{"status":"available"}`).Want(200)
		if got := h.presence(t, ada); got != "wrap_up" {
			t.Fatalf("who chose to be available is %s", got)
		}
		h.dispose(n.ID, `{"code":"bought"}`).Refused("validation_failed", "code not_declared")
		h.dispose(n.ID, `{"code":"sale"}`).Want(200)
		if a := h.do("GET", "/agents/"+ada, nil).Want(200); a.Text("presence.status") != "available" || a.At("wrap_up_call_id") != nil {
			t.Fatalf("with the disposition: %s", a.Bytes)
		}
		if got := h.wrapUpSeconds(t, n.ID); got < 600 || got > 601 {
			t.Errorf("%d s of wrap-up, want 600", got)
		}
		n, entry = h.serve(t, id, ada)
		h.hangUp(t, n, entry)
		h.dispose(n.ID, `{"code":"none"}`).Want(200)
		if got := h.presence(t, ada); got != "wrap_up" {
			t.Errorf("a disposition within the usual time: %s", got)
		}
		h.advance(31 * time.Second)
		if got := h.presence(t, ada); got != "available" {
			t.Errorf("after the usual time: %s", got)
		}
	})
}

func TestDispositionRequired_SetDuringCallOrNever(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newDispositions(t, d)
		id := h.addQueue(`,"wrap_up_seconds":30,"disposition_required":true`)
		ada := h.addAgent(t, "ada", id, "")
		n, entry := h.serve(t, id, ada)
		h.dispose(n.ID, `{"code":"sale"}`).Want(200)
		h.hangUp(t, n, entry)
		h.advance(31 * time.Second)
		if got := h.presence(t, ada); got != "available" {
			t.Errorf("set during the call: %s", got)
		}
		n, entry = h.serve(t, id, ada)
		h.hangUp(t, n, entry)
		h.advance(time.Hour)
		if got := h.presence(t, ada); got != "wrap_up" {
			t.Errorf("within the hour: %s", got)
		}
		h.advance(31 * time.Second)
		if got := h.presence(t, ada); got != "available" {
			t.Errorf("after the hour: %s", got)
		}
		other := h.dispose(n.ID, `{"code":"late"}`).Want(200)
		if got := h.presence(t, ada); got != "available" {
			t.Errorf("after a late disposition %s: %s", other.Bytes, got)
		}
	})
}

// A disposition that is set while the call ends never leaves the agent in a wrap-up that waits for it.
func TestDispositionRequired_SetWhileCallEnds(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newDispositions(t, d)
		id := h.addQueue(`,"wrap_up_seconds":0,"disposition_required":true`)
		ada := h.addAgent(t, "ada", id, "")
		for i := range 10 {
			n, entry := h.serve(t, id, ada)
			var both sync.WaitGroup
			both.Go(func() {
				err := d.TxContext(h.ctx, func(ctx context.Context, tx db.Querier) error {
					return h.CompleteEntry(ctx, tx, h.org, entry, time.Minute)
				})
				if err != nil {
					t.Errorf("end of the conversation: %v", err)
				}
			})
			both.Go(func() { h.dispose(n.ID, fmt.Sprintf(`{"code":"code %d"}`, i)) })
			both.Wait()
			if err := h.calls.End(h.ctx, call.Ended{New: n, At: h.now(), Outcome: call.Outcome{Reason: "caller_hangup"}}); err != nil {
				t.Fatal(err)
			}
			a := h.do("GET", "/agents/"+ada, nil).Want(200)
			if a.Text("presence.status") != "available" || a.At("wrap_up_call_id") != nil {
				t.Fatalf("call %d: %s", i, a.Bytes)
			}
		}
	})
}
