package call_test

import (
	"context"
	"strings"
	"testing"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
	"soniq/internal/platform/journal"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/call/calltest"
)

// A call with its beginning and answer in the journal, and not in the database, is complete after a kill and Replay.
func TestJournal_ReplayAfterKill(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o, dir := newTestOrg(t, d), t.TempDir()
		o.RestartCalls(func(c *call.Config) { c.Journal = openJournal(t, dir, 0, nil) })
		p := &placedCall{testOrg: o, New: call.New{Org: o.ID, ID: db.NewID("call"), Direction: call.Inbound, Source: "sip", From: "+12025550142", To: "+12025550199",
			StartedAt: o.At, TrunkID: "trk_1", CallerLeg: db.NewID("leg"), CallerSIP: "sip-1", Metadata: map[string]string{"order": "7"}}}
		if _, ok := o.Calls.JournalBegin(p.New); !ok {
			t.Fatal("the beginning is not sure")
		}
		p.next = call.Change{Org: o.ID, ID: p.ID, At: o.At}
		p.prepareAnswer()
		if _, ok := o.Calls.JournalChange(p.next); !ok {
			t.Fatal("the answer is not sure")
		}
		if _, ok := o.Calls.JournalChange(call.Change{Events: []event.Payload{event.CallHeld{}}}); ok {
			t.Error("a change that tells of something else cannot be read again, and is not sure")
		}

		gone := call.New{Org: "org_gone", ID: db.NewID("call"), Direction: call.Inbound, Source: "sip", StartedAt: o.At}
		if _, ok := o.Calls.JournalBegin(gone); !ok {
			t.Fatal("the call of an organisation that is erased meanwhile is not sure")
		}
		openJournal(t, dir, 3, func(found [][]byte) {
			found = append([][]byte{found[2], []byte("{")}, found...) // an entry that can never be written does not block the others
			for range 2 {                                             // a second Replay after a kill during the first
				o.Must(o.Calls.Replay(context.Background(), found))
			}
		})
		got := p.Get(p.ID)
		for name, value := range map[string]any{"status": "in_progress", "agent_id": "usr_1", "from_number": "+12025550142"} {
			calltest.Want(t, got, name, value)
		}
		if legs := got["legs"].([]any); len(legs) != 2 {
			t.Errorf("%d legs, want both: %v", len(legs), legs)
		}
		suspended, err := o.Calls.ResumableCalls(context.Background())
		o.Must(err)
		if len(suspended) != 1 || string(suspended[0].Dialogs) != `{"a":{"cseq":7}}` || len(suspended[0].Recordings) != 1 {
			t.Errorf("what a restart needs: %+v", suspended)
		}
		var events int
		const count = `SELECT COUNT(*) FROM events WHERE org_id = $1 AND call_id = $2`
		o.Must(d.Read(context.Background()).QueryRow(context.Background(), count, o.ID, p.ID).Scan(&events))
		if events != 2 {
			t.Errorf("%d events, want call.started and call.answered, once", events)
		}
	})
}

// A call placed by the API without a committed row is there after a kill and Replay, with its note and its author.
func TestJournal_PlacedCallReplayed(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o, dir := newTestOrg(t, d), t.TempDir()
		o.RestartCalls(func(c *call.Config) { c.Journal = openJournal(t, dir, 0, nil) })
		n := call.New{Org: o.ID, ID: db.NewID("call"), Direction: call.Outbound, Source: "api", From: "101", To: "+12025550143", UserID: "usr_1", StartedAt: o.At,
			Status: call.Queued, Metadata: map[string]string{"order": "7"}, Reference: "r1", Purpose: "asked to be called",
			By: call.Author{Type: "mcp", ID: "key_1", Name: "an assistant"}}
		if _, ok := o.Calls.JournalBegin(n); !ok {
			t.Fatal("the beginning is not sure")
		}
		openJournal(t, dir, 1, func(found [][]byte) { o.Must(o.Calls.Replay(context.Background(), found)) })
		got := o.Do("GET", "/calls/"+n.ID+"?expand=notes", nil).Want(200)
		for name, value := range map[string]any{"status": "queued", "client_reference": "r1", "metadata.order": "7", "notes_count": 1.0,
			"notes.0.body": "asked to be called", "notes.0.author.type": "mcp", "notes.0.author.name": "an assistant"} {
			if got.At(name) != value {
				t.Errorf("%s is %v, want %v", name, got.At(name), value)
			}
		}
	})
}

// Replay accepts an answer without resume data, and an entry of earlier versions, which has the dialogs inside the
// JSON.
func TestJournal_DialogsInlineOfOldVersions(t *testing.T) {
	t.Parallel()
	o, dir, ctx := newTestOrg(t, dbtest.SQLite(t)), t.TempDir(), context.Background()
	o.RestartCalls(func(c *call.Config) { c.Journal = openJournal(t, dir, 0, nil) })
	one, two := o.place(), o.place()
	one.prepareAnswer()
	one.next.Dialogs = nil
	if _, ok := o.Calls.JournalChange(one.next); !ok {
		t.Fatal("the answer is not sure")
	}
	before := []byte(`{"change":{"Org":"` + o.ID + `","ID":"` + two.ID + `","Revision":1,"Row":{"Status":"in_progress"},"Dialogs":{"a":{"cseq":8}}}}`)
	openJournal(t, dir, 1, func(found [][]byte) { o.Must(o.Calls.Replay(ctx, append(found, before))) })
	suspended, err := o.Calls.ResumableCalls(ctx)
	o.Must(err)
	if len(suspended) != 1 || suspended[0].New.ID != two.ID || string(suspended[0].Dialogs) != `{"a":{"cseq":8}}` {
		t.Errorf("what a restart needs: %+v", suspended)
	}
	for _, l := range one.Get(one.ID)["legs"].([]any) {
		calltest.Want(t, l.(map[string]any), "quality", nil)
	}
	if strings.Contains(o.storedRows(one.ID), "quality=null") {
		t.Error("nothing is known of the quality of a leg that goes on, and something is written")
	}
}

// Resume data that was appended in an entry of its own, after the answer, is replayed with its change.
func TestJournal_DialogsInOwnEntry(t *testing.T) {
	t.Parallel()
	o, dir, ctx := newTestOrg(t, dbtest.SQLite(t)), t.TempDir(), context.Background()
	o.RestartCalls(func(c *call.Config) { c.Journal = openJournal(t, dir, 0, nil) })
	cut, settled := o.place(), o.place() // cut: killed before the commit; settled: killed between the two entries that are settled after it
	for _, p := range []*placedCall{cut, settled} {
		p.prepareAnswer()
		x := p.next
		p.next.Dialogs, p.next.Fleeting = nil, true
		settle, ok := o.Calls.JournalChange(p.next)
		if !ok {
			t.Fatal("the answer is not sure")
		}
		if p == settled {
			settle()
		}
		if _, ok := o.Calls.JournalDialogs(x); !ok {
			t.Fatal("what a restart needs is not sure")
		}
	}
	if settle, ok := o.Calls.JournalDialogs(call.Change{Org: o.ID, ID: cut.ID}); !ok {
		t.Error("nothing to keep is as sure as can be")
	} else {
		settle()
	}
	openJournal(t, dir, 4, func(found [][]byte) { // a settled entry stays while an earlier one is not settled
		o.Must(o.Calls.Replay(ctx, append(found[:1:1], found[1], found[3])))
	})
	suspended, err := o.Calls.ResumableCalls(ctx)
	o.Must(err)
	if len(suspended) != 1 || suspended[0].New.ID != cut.ID || string(suspended[0].Dialogs) != `{"a":{"cseq":7}}` {
		t.Errorf("what a restart needs: %+v", suspended)
	}
}

// A settled entry is not found at the next start.
func TestJournal_SettledEntryDropped(t *testing.T) {
	t.Parallel()
	o, dir := newTestOrg(t, dbtest.SQLite(t)), t.TempDir()
	o.RestartCalls(func(c *call.Config) { c.Journal = openJournal(t, dir, 0, nil) })
	for _, id := range []string{"call_1", "call_2"} {
		settle, ok := o.Calls.JournalBegin(call.New{Org: o.ID, ID: id})
		if !ok {
			t.Fatal("not sure")
		}
		if id == "call_1" {
			settle()
		}
	}
	openJournal(t, dir, 1, nil)
	o.RestartCalls(func(c *call.Config) { c.Journal = nil })
	if _, ok := o.Calls.JournalBegin(call.New{}); ok {
		t.Error("nothing is sure without a journal")
	}
}

// openJournal opens the journal as at a start, and fails unless it finds the number of entries.
func openJournal(t *testing.T, dir string, entries int, replay func([][]byte)) *journal.Journal {
	t.Helper()
	j, found, err := journal.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	if len(found) != entries {
		t.Fatalf("%d entries, want %d: %q", len(found), entries, found)
	}
	if replay != nil {
		replay(found)
	}
	return j
}
