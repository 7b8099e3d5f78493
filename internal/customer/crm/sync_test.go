package crm_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
	"soniq/internal/platform/visibility/visibilitytest"
	"soniq/internal/telephony/call"
)

// endCall queues a finished call for the system. more is passed to QueueCall.
func (h *fixture) endCall(more bool) {
	h.t.Helper()
	now := db.At(time.Now())
	h.mu.Lock()
	h.call = call.Call{ID: "call_1", Direction: call.Inbound, Status: call.Completed, FromNumber: "+442079460018", ToNumber: "+442079460000", StartedAt: now,
		EndedAt: &now, TalkDurationSeconds: 9}
	h.mu.Unlock()
	err := h.d.TxContext(context.Background(), func(ctx context.Context, tx db.Querier) error {
		return h.QueueCall(ctx, tx, h.org, call.CDR{CallID: "call_1", Direction: call.Inbound, FromNumber: "+442079460018"}, more)
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// addTranscript sets the summary and the transcript of the call and requeues it.
func (h *fixture) addTranscript(summary, words string) {
	h.t.Helper()
	h.mu.Lock()
	h.call.AISummary, h.transcript = &summary, words
	h.mu.Unlock()
	err := h.d.TxContext(context.Background(), func(ctx context.Context, tx db.Querier) error {
		return h.RequeueCall(ctx, tx, h.org, "call_1")
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

var callLogTemplate = map[string]any{"url": "SYSTEM/calls", "body": map[string]any{"seconds": "{{talk_seconds}}", "text": "{{summary}}|{{transcript}}"}}

func (h *fixture) waitSynced(attempts float64) {
	h.t.Helper()
	h.waitFor("written call", "/crm/sync-jobs?status=synced", func(a *optest.Answer) bool {
		return len(a.At("data").([]any)) == 1 && a.At("data.0.attempts") == attempts
	})
}

// A call is written when it ends. Its summary and its transcript change the same record.
func TestCallLog_UpdatedWithTranscript(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.setResponse(func(request) (int, string) { return 201, `{"id":"log-7"}` })
		h.connect(map[string]any{"call_log": callLogTemplate, "call_update": map[string]any{"url": "SYSTEM/calls/{{record_id}}", "method": "PATCH",
			"body": map[string]any{"text": "{{summary}}|{{transcript}}"}}}, nil).Want(201)
		h.endCall(true)
		h.waitSynced(1)
		h.addTranscript("Wants a quote.", "Caller: A quote, please.")
		h.waitFor("changed call", "/crm/sync-jobs?status=synced", func(*optest.Answer) bool { return len(h.requests()) == 2 })
		all := h.requests()
		if all[0].path != "/calls" || all[0].body != `{"seconds":"9","text":"|"}` {
			t.Errorf("first %+v", all[0])
		}
		if all[1].method != "PATCH" || all[1].path != "/calls/log-7" || all[1].body != `{"text":"Wants a quote.|Caller: A quote, please."}` || all[1].key == all[0].key {
			t.Errorf("then %+v", all[1])
		}
		h.waitFor("end", "/crm/sync-jobs?status=synced", func(a *optest.Answer) bool { return len(a.At("data").([]any)) == 1 })
		h.addTranscript("Wants a quote.", "Caller: A quote, please.") // unchanged
		h.waitSynced(1)
		if len(h.requests()) != 2 {
			t.Errorf("told nothing new: %+v", h.requests())
		}
	})
}

// A call is written once, with its summary, to a system that cannot change calls.
func TestCallLog_SingleWrite(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.setResponse(func(request) (int, string) { return 201, `{"id":"log-7"}` })
	h.connect(map[string]any{"call_log": callLogTemplate}, nil).Want(201)
	h.endCall(true)
	h.addTranscript("Wants a quote.", "")
	h.waitSynced(1)
	h.addTranscript("Wants a quote.", "Caller: A quote, please.")
	h.waitSynced(1)
	if all := h.requests(); len(all) != 1 || !strings.Contains(all[0].body, "Wants a quote.|") {
		t.Errorf("told %+v", all)
	}
}

// A call without recording is written at once.
func TestCallLog_WithoutRecordingAtOnce(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.setResponse(func(request) (int, string) { return 201, `{"id":"log-7"}` })
	h.connect(map[string]any{"call_log": callLogTemplate}, nil).Want(201)
	h.endCall(false)
	h.waitSynced(1)
	x := visibilitytest.Org{T: t, DB: h.d, ID: h.org}
	for user, want := range map[string]float64{"usr_own": 1, "usr_bob": 0} { // Bob had no part in the call
		x.User(user, map[string]string{"usr_own": "owner", "usr_bob": "agent"}[user])
		p := optest.Admin(h.org)
		p.UserID = user
		if a := h.server.Do(p, "GET", "/crm/sync-jobs?include_total=true", nil).Want(200); a.At("total") != want || float64(len(a.At("data").([]any))) != want {
			t.Errorf("%s sees %s", user, a.Bytes)
		}
	}
}

// A template for calls needs the scope that reads calls, when it is made and when a call is written.
func TestCallLog_NeedsScopeOfReader(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.setResponse(func(request) (int, string) { return 201, `{"id":"log-7"}` })
	id := h.connect(map[string]any{"call_log": callLogTemplate}, nil).Want(201).Text("id")
	poor := optest.Admin(h.org)
	poor.Scopes = []access.Scope{access.ContactsRead, access.ContactsWrite}
	template, _ := json.Marshal(map[string]any{"settings": map[string]any{"call_log": callLogTemplate}})
	h.server.Do(poor, "PATCH", "/crm/connections/"+id, string(template)).Want(403).Refused("insufficient_scope")
	h.credentials = revokedCredentials{} // who made the connection may not read calls any more
	h.endCall(false)
	h.waitFor("refusal", "/crm/sync-jobs?status=failed", func(a *optest.Answer) bool { return len(a.At("data").([]any)) == 1 })
	if all := h.requests(); len(all) != 0 {
		t.Errorf("told %+v", all)
	}
}
