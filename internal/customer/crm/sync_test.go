package crm_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
	"soniq/internal/telephony/call"
)

// endCall queues a finished call for the system. more is passed to QueueCall.
func (h *house) ended(more bool) {
	h.t.Helper()
	now := db.At(time.Now())
	h.mu.Lock()
	h.call = call.Call{ID: "call_1", Direction: call.Inbound, Status: call.Completed, FromNumber: "+442079460018", ToNumber: "+442079460000", StartedAt: now,
		EndedAt: &now, TalkDurationSeconds: 9}
	h.mu.Unlock()
	err := h.d.TxContext(context.Background(), func(ctx context.Context, tx db.Querier) error {
		return h.LogCall(ctx, tx, h.org, call.CDR{CallID: "call_1", Direction: call.Inbound, FromNumber: "+442079460018"}, more)
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// addTranscript sets the summary and the transcript of the call and requeues it.
func (h *house) grew(summary, words string) {
	h.t.Helper()
	h.mu.Lock()
	h.call.AISummary, h.words = &summary, words
	h.mu.Unlock()
	err := h.d.TxContext(context.Background(), func(ctx context.Context, tx db.Querier) error { return h.CallGrew(ctx, tx, h.org, "call_1") })
	if err != nil {
		h.t.Fatal(err)
	}
}

var logging = map[string]any{"url": "SYSTEM/calls", "body": map[string]any{"seconds": "{{talk_seconds}}", "text": "{{summary}}|{{transcript}}"}}

func (h *house) synced(attempts float64) {
	h.t.Helper()
	h.until("written call", "/crm/sync-jobs?status=synced", func(a *optest.Answer) bool {
		return len(a.At("data").([]any)) == 1 && a.At("data.0.attempts") == attempts
	})
}

// A call is written when it ends. Its summary and its transcript change the same record.
func TestACallIsChangedWhereItWasWrittenWhenItsWordsCome(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := build(t, d)
		h.says(func(request) (int, string) { return 201, `{"id":"log-7"}` })
		h.connect(map[string]any{"call_log": logging, "call_update": map[string]any{"url": "SYSTEM/calls/{{record_id}}", "method": "PATCH",
			"body": map[string]any{"text": "{{summary}}|{{transcript}}"}}}, nil).Want(201)
		h.ended(true)
		h.synced(1)
		h.grew("Wants a quote.", "Caller: A quote, please.")
		h.until("changed call", "/crm/sync-jobs?status=synced", func(*optest.Answer) bool { return len(h.seen()) == 2 })
		all := h.seen()
		if all[0].path != "/calls" || all[0].body != `{"seconds":"9","text":"|"}` {
			t.Errorf("first %+v", all[0])
		}
		if all[1].method != "PATCH" || all[1].path != "/calls/log-7" || all[1].body != `{"text":"Wants a quote.|Caller: A quote, please."}` || all[1].key == all[0].key {
			t.Errorf("then %+v", all[1])
		}
		h.until("end", "/crm/sync-jobs?status=synced", func(a *optest.Answer) bool { return len(a.At("data").([]any)) == 1 })
		h.grew("Wants a quote.", "Caller: A quote, please.") // unchanged
		h.synced(1)
		if len(h.seen()) != 2 {
			t.Errorf("told nothing new: %+v", h.seen())
		}
	})
}

// A call is written once, with its summary, to a system that cannot change calls.
func TestASystemThatCannotChangeACallIsToldOnce(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.says(func(request) (int, string) { return 201, `{"id":"log-7"}` })
	h.connect(map[string]any{"call_log": logging}, nil).Want(201)
	h.ended(true)
	h.grew("Wants a quote.", "")
	h.synced(1)
	h.grew("Wants a quote.", "Caller: A quote, please.")
	h.synced(1)
	if all := h.seen(); len(all) != 1 || !strings.Contains(all[0].body, "Wants a quote.|") {
		t.Errorf("told %+v", all)
	}
}

// A call without recording is written at once.
func TestACallWithoutRecordingIsWrittenAtOnce(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.says(func(request) (int, string) { return 201, `{"id":"log-7"}` })
	h.connect(map[string]any{"call_log": logging}, nil).Want(201)
	h.ended(false)
	h.synced(1)
}
