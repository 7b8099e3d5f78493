package transcript_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"soniq/internal/intelligence/memory"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
	"soniq/internal/platform/redact"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/call/recording"
)

// removes are Policies with the same policy for all.
type removes struct{ redact.Policy }

func (r removes) Redaction(context.Context, string) (redact.Policy, error) { return r.Policy, nil }

// cardLines are said by caller, agent and caller: the number of a card is split over two passages.
var cardLines = []string{"Hello, my card number is 4111 1111", "Go on, please.", "1111 1111, and call me on 0170 1234567 tomorrow."}

// rowsWith returns the tables, and their columns, that contain a text.
func rowsWith(t *testing.T, d *db.DB, texts ...string) (found []string) {
	t.Helper()
	ctx := context.Background()
	q := `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`
	if d.Name() != "sqlite" {
		q = `SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()`
	}
	tables, err := db.Strings(ctx, d.Read(ctx), "list tables", q)
	must(t, err)
	for _, table := range tables {
		rows, err := d.Read(ctx).Query(ctx, `SELECT * FROM `+table) // tenant: a test reads everything
		must(t, err)
		for rows.Next() {
			for _, text := range texts {
				if row := fmt.Sprintf("%s", scanRow(t, rows)); strings.Contains(row, text) {
					found = append(found, table+": "+text+" in "+row)
				}
			}
		}
		must(t, rows.Close())
	}
	return found
}

func scanRow(t *testing.T, rows *sql.Rows) []any {
	t.Helper()
	columns, err := rows.Columns()
	must(t, err)
	values, to := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		to[i] = &values[i]
	}
	must(t, rows.Scan(to...))
	for i, v := range values {
		if b, ok := v.([]byte); ok {
			values[i] = string(b)
		}
	}
	return values
}

// No table has the number that was said, in no writer: transcript, note, events, memory, notes of people, facts. What is no such number is
// kept.
//
// https://github.com/CALLE-AI/awesome-phone-call-agents/issues/237
func TestRedaction_NowhereStored(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newRedactingFixture(t, d, &scriptedRecognizer{lines: slices.Clone(cardLines)},
			removes{redact.Policy{Kinds: redact.Kinds, Audio: true}})
		h.playCall(t, "call_1", true)
		tr, sum := h.waitProcessed(t, "call_1")
		want := "Caller: Hello, my card number is [card]\nAgent: Go on, please.\nCaller: [card], and call me on 0170 1234567 tomorrow."
		if tr.Text != want || len(tr.Redactions) != 2 || tr.Redactions[0].Kind != "card" {
			t.Errorf("transcript %q with %+v, want %q", tr.Text, tr.Redactions, want)
		}
		if sum.Status != transcript.Completed {
			t.Errorf("summary %s", sum.Status)
		}
		ctx := access.With(context.Background(), access.Principal{OrgID: "org_a", KeyID: "key_1"})
		in := &call.NoteIn{ID: "call_1"}
		in.Body.Body = "Paid with 4111 1111 1111 1111"
		_, err := h.calls.AddNote(ctx, in)
		must(t, err)
		must(t, d.Tx(ctx, func(tx db.Querier) error {
			return h.memory.AddText(ctx, tx, "org_a", memory.TextEntry{Kind: memory.KindSMS, Of: "sms_1", Phone: "+14155550100",
				Text: "My card: 4111 1111 1111 1111", At: h.started})
		}))
		if found := rowsWith(t, d, "1111 1111", "11111111"); len(found) > 0 {
			t.Errorf("the number is stored: %q", found)
		}
		if len(rowsWith(t, d, "0170 1234567")) == 0 {
			t.Error("the telephone number is not kept")
		}
	})
}

// The live view and the stored beginning of a transcript have no half of a number.
func TestRedaction_WhileTalking(t *testing.T) {
	d := dbtest.SQLite(t)
	h := newRedactingFixture(t, d, &scriptedRecognizer{lines: slices.Clone(cardLines)}, removes{redact.Policy{Kinds: redact.Kinds}})
	l := h.service.StartLive("org_a", "call_9", "/nowhere", muLawStereo)
	l.Write(threeUtterances()[:16000*5])
	waitUntil(t, "two segments", func() bool { return len(l.Segments()) == 2 })
	tr, err := h.service.Of(context.Background(), "org_a", "call_9")
	must(t, err)
	if tr.Text != "Agent: Go on, please." {
		t.Errorf("live transcript %q, want nothing of the number", tr.Text)
	}
}

// A recording is readable after its numbers were replaced by silence, and its event comes then.
func TestRedaction_Audio(t *testing.T) {
	d := dbtest.SQLite(t)
	h := newRedactingFixture(t, d, &scriptedRecognizer{lines: slices.Clone(cardLines)},
		removes{redact.Policy{Kinds: redact.Kinds, Audio: true}})
	h.playCall(t, "call_1", true)
	h.waitProcessed(t, "call_1")
	r := h.recordingOf(t, "call_1")
	if r.Status != "available" || len(r.Redactions) != 2 || r.AvailableAt == nil || r.SHA256 == nil || *r.SHA256 == "x" {
		t.Errorf("recording %+v", r)
	}
	if told := h.events(t, "call.recording"); len(told) != 1 || !strings.Contains(told[0], `"status":"available"`) {
		t.Errorf("call.recording was told %d times: %v", len(told), told)
	}
	samples := h.samplesOf(t)
	for second, want := range map[int]bool{1: true, 3: false, 5: true} { // the agent's words have no number
		middle := samples[second*16000+6000 : second*16000+10000]
		if silent := len(bytes.Trim(middle, "\xff")) == 0; silent != want {
			t.Errorf("second %d is silent: %v, want %v", second, silent, want)
		}
	}
	if len(samples) != len(threeUtterances()) {
		t.Errorf("%d bytes of samples, want %d", len(samples), len(threeUtterances()))
	}
}

// A recording whose words were not understood is withheld, and released once they are.
func TestRedaction_AudioWithheld(t *testing.T) {
	d := dbtest.SQLite(t)
	missing := &transcript.MissingDependency{Problem: "libpocketsphinx.so.3 was not found", Remedy: "apt-get install libpocketsphinx3"}
	listener := &scriptedRecognizer{err: missing}
	h := newRedactingFixture(t, d, listener, removes{redact.Policy{Kinds: redact.Kinds, Audio: true}})
	h.playCall(t, "call_1", false)
	tr, _ := h.waitProcessed(t, "call_1")
	r := h.recordingOf(t, "call_1")
	if r.Status != "failed" || r.Error == nil || r.Error.Code != "redaction_failed" || !strings.Contains(r.Error.Message, "apt-get install") {
		t.Fatalf("recording %s with %+v, want it withheld", r.Status, r.Error)
	}
	listener.setLines(nil, cardLines...)
	api := optest.New(t, d, h.service.Operations()...)
	if a := api.Do(optest.Admin("org_a"), "POST", "/transcripts/"+tr.ID+"/retry", ""); a.Status != 202 {
		t.Fatalf("retry: %d %s", a.Status, a.Bytes)
	}
	waitUntil(t, "the recording", func() bool { return h.recordingOf(t, "call_1").Status == "available" })
	if r = h.recordingOf(t, "call_1"); r.Error != nil || len(r.Redactions) != 2 {
		t.Errorf("recording %+v", r)
	}
}

// Without the setting nothing changes.
func TestRedaction_Off(t *testing.T) {
	d := dbtest.SQLite(t)
	h := newFixture(t, d, &scriptedRecognizer{lines: slices.Clone(cardLines)})
	h.playCall(t, "call_1", true)
	if r := h.recordingOf(t, "call_1"); r.Status != "available" || *r.SHA256 != "x" {
		t.Errorf("recording %+v", r)
	}
	if tr, _ := h.waitProcessed(t, "call_1"); !strings.Contains(tr.Text, "4111 1111") || len(tr.Redactions) != 0 {
		t.Errorf("transcript %q", tr.Text)
	}
}

func (h *fixture) recordingOf(t *testing.T, callID string) recording.Recording {
	t.Helper()
	ctx := access.With(context.Background(), access.Principal{OrgID: "org_a"})
	out, err := h.recordings.GetRecording(ctx, &recording.GetRecordingIn{ID: "rec_" + callID})
	must(t, err)
	return out.Body
}

// samplesOf returns the samples of the only recording.
func (h *fixture) samplesOf(t *testing.T) []byte {
	t.Helper()
	var all []byte
	must(t, filepath.WalkDir(h.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if all, err = os.ReadFile(path); err == nil {
			all = all[44:]
		}
		return err
	}))
	return all
}
