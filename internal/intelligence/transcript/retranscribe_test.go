package transcript_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"soniq/internal/intelligence/memory"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
)

// setLines sets the lines that the recogniser returns from now on, or its error.
func (e *scriptedRecognizer) setLines(err error, lines ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lines, e.err = lines, err
}

func TestRetry_ReplacesTranscript(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		engine := &scriptedRecognizer{lines: append([]string{}, scriptLines...)}
		h := newFixture(t, d, engine)
		h.playCall(t, "call_1", true)
		first, _ := h.waitProcessed(t, "call_1")
		api, admin := optest.New(t, d, h.service.Operations()...), optest.Admin("org_a")

		engine.setLines(nil, "The parcel with my red shoes never came.", "We will send the shoes again.", "Good.")
		a := api.Do(admin, "POST", "/transcripts/"+first.ID+"/retry", map[string]any{"language": "en-GB"})
		if a.Status != 202 || a.Body["status"] != "queued" {
			t.Fatalf("retry: %d %s", a.Status, a.Bytes)
		}
		second, sum := h.waitProcessed(t, "call_1")
		if second.ID != first.ID || second.Status != transcript.Completed || !strings.Contains(second.Text, "red shoes") ||
			second.Language != "en-GB" {
			t.Errorf("after another try: %+v", second)
		}
		if !strings.Contains(sum.AISummary, "shoes") {
			t.Errorf("the note is still %q", sum.AISummary)
		}
		if n := len(h.events(t, "call.transcription")); n != 2 {
			t.Errorf("call.transcription was told %d times, want twice", n)
		}
		for query, want := range map[string]int{"slow internet": 0, "red shoes": 1} {
			found, err := h.memory.Search(context.Background(), "org_a", memory.Query{Text: query, MinScore: 0.3})
			if err != nil || len(found.Results) != want {
				t.Errorf("memory finds %q %d times, %v; want %d", query, len(found.Results), err, want)
			}
		}
	})
}

func TestRetry_FailureKeepsPrevious(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	engine := &scriptedRecognizer{lines: append([]string{}, scriptLines...)}
	h := newFixture(t, d, engine)
	h.playCall(t, "call_1", true)
	first, _ := h.waitProcessed(t, "call_1")
	api, admin := optest.New(t, d, h.service.Operations()...), optest.Admin("org_a")
	engine.setLines(&transcript.MissingDependency{Problem: "English only"})
	if a := api.Do(admin, "POST", "/transcripts/"+first.ID+"/retry", map[string]any{"language": "de"}); a.Status != 202 {
		t.Fatalf("retry: %d %s", a.Status, a.Bytes)
	}
	second, sum := h.waitProcessed(t, "call_1")
	if second.Status != transcript.Completed || second.Text != first.Text || second.Error == nil ||
		second.Error.Code != transcript.SkippedNoEngine {
		t.Errorf("after a try that failed: %+v", second)
	}
	if sum.Status != transcript.Completed || sum.AISummary == "" {
		t.Errorf("the note is %+v", sum)
	}
}

func TestRetry_InvalidRequestRefused(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	engine := &scriptedRecognizer{err: errors.New("engine is on fire")}
	h := newFixture(t, d, engine)
	h.playCall(t, "call_1", true)
	first, _ := h.waitProcessed(t, "call_1")
	api, admin := optest.New(t, d, h.service.Operations()...), optest.Admin("org_a")
	for name, c := range map[string]struct {
		path string
		body any
		want string
	}{
		"unknown engine":     {"/transcripts/" + first.ID + "/retry", map[string]any{"engine": "whisper"}, "validation_failed"},
		"unknown transcript": {"/transcripts/trn_none/retry", nil, "not_found"},
	} {
		if a := api.Do(admin, "POST", c.path, c.body); a.Body["code"] != c.want {
			t.Errorf("%s: %d %s", name, a.Status, a.Bytes)
		}
	}
	if a := api.Do(optest.Admin("org_b"), "DELETE", "/transcripts/"+first.ID, nil); a.Status != 404 {
		t.Errorf("another organisation: %d", a.Status)
	}
}

// https://github.com/keygen-sh/keygen-api/issues/207
func TestDelete_RemovesTranscriptAndMemory(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d, &scriptedRecognizer{lines: append([]string{}, scriptLines...)})
		h.playCall(t, "call_1", true)
		first, _ := h.waitProcessed(t, "call_1")
		api, admin := optest.New(t, d, h.service.Operations()...), optest.Admin("org_a")
		if !strings.Contains(eventsOf(t, d, "call_1"), "internet") {
			t.Fatal("no event of the call has its words")
		}
		if a := api.Do(admin, "DELETE", "/transcripts/"+first.ID, nil); a.Status != 204 {
			t.Fatalf("DELETE: %d %s", a.Status, a.Bytes)
		}
		for _, path := range []string{"/transcripts/" + first.ID, "/calls/call_1/transcript", "/calls/call_1/summary"} {
			if a := api.Do(admin, "GET", path, nil); a.Status != 404 {
				t.Errorf("GET %s: %d", path, a.Status)
			}
		}
		if left := eventsOf(t, d, "call_1"); strings.Contains(left, "internet") || !strings.Contains(left, "call.transcription") {
			t.Errorf("events of the call: %s", left)
		}
		found, err := h.memory.Search(context.Background(), "org_a", memory.Query{Text: "slow internet"})
		if err != nil || len(found.Results) != 0 {
			t.Errorf("memory still finds %+v, %v", found, err)
		}
		c, err := h.memory.Caller(context.Background(), "org_a", "+14155550100", 10)
		if err != nil || c.CallsTotal != 1 || c.Summary != "" || len(c.OpenItems) != 0 {
			t.Errorf("the number's history has %+v, %v; want the bare call", c, err)
		}
	})
}

// eventsOf returns the bodies of a call's events.
func eventsOf(t *testing.T, d *db.DB, callID string) (all string) {
	t.Helper()
	const q = `SELECT body FROM events WHERE org_id = $1 AND call_id = $2`
	rows, err := d.Read(context.Background()).Query(context.Background(), q, "org_a", callID)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var body string
		if err := rows.Scan(&body); err != nil {
			t.Fatal(err)
		}
		all += body + "\n"
	}
	return all
}
