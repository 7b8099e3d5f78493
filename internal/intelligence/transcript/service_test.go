package transcript_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/internal/intelligence/engine/nlp"
	"soniq/internal/intelligence/memory"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/platform/blob"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/redact"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/call/recording"
)

// scriptedRecognizer returns the lines of a script, one per clip.
type scriptedRecognizer struct {
	mu    sync.Mutex // guards lines and err
	lines []string
	err   error
}

func (e *scriptedRecognizer) Transcribe(context.Context, transcript.Clip) (transcript.Recognition, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return transcript.Recognition{}, e.err
	}
	if len(e.lines) == 0 {
		return transcript.Recognition{}, nil
	}
	line := e.lines[0]
	e.lines = e.lines[1:]
	return transcript.Recognition{Text: line, Confidence: 0.9}, nil
}

func (e *scriptedRecognizer) Engine() transcript.Engine {
	return transcript.Engine{Name: "teller", Model: "play", Version: "1"}
}
func (e *scriptedRecognizer) Ready(ctx context.Context) error { return e.err }

// fixture has the services that process a call after its end.
type fixture struct {
	db         *db.DB
	bus        *bus.Bus
	calls      *call.Service
	recordings *recording.Service
	memory     *memory.Service
	service    *transcript.Service
	dir        string
	started    time.Time
}

// newFixture returns services with an engine. Each of changes changes the configuration of the transcripts.
func newFixture(t *testing.T, d *db.DB, listener transcript.Recognizer, changes ...func(*transcript.Config)) *fixture {
	t.Helper()
	return newRedactingFixture(t, d, listener, redact.Off{}, changes...)
}

// newRedactingFixture is newFixture with the numbers that are removed.
func newRedactingFixture(t *testing.T, d *db.DB, listener transcript.Recognizer, removed redact.Policies,
	changes ...func(*transcript.Config)) *fixture {
	t.Helper()
	ctx := context.Background()
	b := bus.New()
	h := &fixture{db: d, bus: b, dir: t.TempDir(), started: time.Now().Add(-time.Minute)}
	files, err := blob.OpenDir(h.dir, blob.Alone{})
	if err != nil {
		t.Fatal(err)
	}
	outbox := &event.Outbox{DB: d, Bus: b}
	jobs := &job.Queue{Bus: b}
	h.calls = call.NewService(call.Config{DB: d, Outbox: outbox, Jobs: jobs, Node: "n1", Links: call.Links{BaseURL: "http://x"},
		Redactions: removed})
	h.recordings = recording.New(recording.Config{DB: d, Outbox: outbox, Jobs: jobs, Files: files, Calls: h.calls, Node: "n1",
		Links: call.Links{BaseURL: "http://x", Key: make([]byte, 32)}, Redactions: removed})
	h.calls.Observe(h.recordings)
	lexicon := nlp.NewWordEmbedding()
	h.memory = memory.New(memory.Config{DB: d, Lexicon: lexicon, Embedder: lexicon, Redactions: removed})
	c := transcript.Config{DB: d, Outbox: outbox, Jobs: jobs, Calls: h.calls, Recordings: h.recordings,
		Memory: h.memory, Recognizer: listener, Summarizer: nlp.NewRuleSummarizer(lexicon),
		Log:        slog.New(slog.NewTextHandler(io.Discard, nil)),
		Utterances: noAgents{}, Zones: noAgents{}, Vocabularies: noAgents{}, Languages: noAgents{}, Deliveries: noAgents{},
		Redactions: removed}
	if listener != nil {
		c.Pool = transcript.NewRecognizerPool(listener, 1)
		t.Cleanup(c.Pool.Close)
	}
	for _, change := range changes {
		change(&c)
	}
	h.service = transcript.New(c)
	r := &job.Runner{DB: d, Queue: jobs, Name: transcript.Queue, Node: "n1", Log: c.Log,
		Options: job.Options{Workers: 2, Timeout: time.Minute}}
	h.service.RegisterJobs(r)
	if err := r.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Stop(ctx) })
	const org = `INSERT INTO orgs (id, path, environment, name, plan, status, country, timezone, language, settings, created_at, updated_at)
		VALUES ($1, $1, 'production', $1, 'free', 'active', 'US', 'UTC', 'en', '{}', 0, 0)`
	if err := d.Tx(ctx, func(tx db.Querier) error { _, err := tx.Exec(ctx, org, "org_a"); return err }); err != nil {
		t.Fatal(err)
	}
	return h
}

var muLawStereo = transcript.Format{Encoding: transcript.PCMU, Rate: 8000, Channels: 2}

// threeUtterances returns seven seconds of audio in which caller, agent and caller speak in turn.
func threeUtterances() []byte {
	out := make([]byte, 0, 7*16000)
	for i := range 7 * 8000 {
		left, right := byte(0xFF), byte(0xFF)
		loud := []byte{0x90, 0x10}[i/4%2]
		switch i / 8000 {
		case 1, 5:
			left = loud
		case 3:
			right = loud
		}
		out = append(out, left, right)
	}
	return out
}

// playCall simulates a recorded call. If live is set it is transcribed live; otherwise only its recording exists, as
// after a crash.
func (h *fixture) playCall(t *testing.T, id string, live bool) {
	t.Helper()
	ctx := context.Background()
	n := call.New{Org: "org_a", ID: id, Direction: call.Inbound, Source: "inbound", From: "+14155550100", To: "+14155550199", StartedAt: h.started}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(h.calls.Begin(ctx, n))
	name := call.BlobName(n.Org, n.ID, n.StartedAt)
	recording := &call.NewRecording{ID: "rec_" + id, Name: name, Consent: "not_required", Trigger: "policy"}
	check(h.calls.Answered(ctx, n, call.Answer{Org: n.Org, ID: n.ID, At: h.started, Recording: recording, By: call.Party{Role: "callee"}}))
	path := filepath.Join(h.dir, name)
	check(os.MkdirAll(filepath.Dir(path), 0o700))
	header := "RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x07\x00\x02\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x08\x00data\x00\x00\x00\x00"
	check(os.WriteFile(path, append([]byte(header), threeUtterances()...), 0o600))
	if live {
		l := h.service.StartLive(n.Org, n.ID, path, muLawStereo)
		for part := threeUtterances(); len(part) > 0; part = part[320:] {
			l.Write(part[:320])
		}
	}
	check(h.calls.End(ctx, call.Ended{New: n, At: time.Now(), AnsweredAt: h.started, Recording: recording.ID}))
	if live {
		h.service.EndLive(n.Org, n.ID)
	}
	check(h.recordings.Recorded(ctx, n.Org, n.ID, recording.ID, call.Audio{Duration: 7 * time.Second, Size: 1, SHA256: "x",
		SampleRate: 8000, Channels: 2},
		h.service.OnRecordingsReady))
}

// waitUntil waits for a condition.
func waitUntil(t *testing.T, what string, ready func() bool) {
	t.Helper()
	limit := time.After(2 * time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-limit:
			t.Fatalf("waited 20 s for %s", what)
		case <-tick.C:
		}
	}
}

// events returns the bodies of all events of a kind.
func (h *fixture) events(t *testing.T, kind string) []string {
	t.Helper()
	rows, err := h.db.Read(context.Background()).Query(context.Background(),
		`SELECT body FROM events WHERE org_id = $1 AND kind = $2 AND audience <> 'immediate'`, "org_a", kind)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var b string
		if err := rows.Scan(&b); err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

func (h *fixture) waitProcessed(t *testing.T, id string) (*transcript.Transcript, *transcript.Summary) {
	t.Helper()
	ctx := context.Background()
	waitUntil(t, "the end of processing", func() bool {
		s, err := h.service.SummaryOf(ctx, "org_a", id)
		return err == nil && s.Embedding.Status != "pending"
	})
	tr, err := h.service.Of(ctx, "org_a", id)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := h.service.SummaryOf(ctx, "org_a", id)
	if err != nil {
		t.Fatal(err)
	}
	return tr, sum
}

var scriptLines = []string{"My internet is really slow every evening.", "I will open a ticket and send you a technician tomorrow.", "Thank you."}

func TestProcess_LiveOrFromRecording(t *testing.T) {
	for name, live := range map[string]bool{"live": true, "after a crash": false} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d, &scriptedRecognizer{lines: append([]string{}, scriptLines...)})
				h.playCall(t, "call_1", live)
				tr, sum := h.waitProcessed(t, "call_1")
				if tr.Status != transcript.Completed || len(tr.Segments) != 3 || tr.Engine.Name != "teller" || tr.CompletedAt == nil {
					t.Errorf("transcript is %+v", tr)
				}
				if want := "Caller: " + scriptLines[0] + "\nAgent: " + scriptLines[1] + "\nCaller: " + scriptLines[2]; tr.Text != want {
					t.Errorf("text is %q, want %q", tr.Text, want)
				}
				if sum.Status != transcript.Completed || !strings.Contains(sum.AISummary, "their internet is really slow") ||
					len(sum.ActionItems) == 0 {
					t.Errorf("summary is %+v", sum)
				}
				if sum.Embedding.Status != "indexed" || sum.Embedding.Dimensions != 256 || sum.Engine.Name != "builtin-rules" {
					t.Errorf("embedding is %+v by %+v", sum.Embedding, sum.Engine)
				}
				h.announcedOnce(t, sum)
				found, err := h.memory.Search(context.Background(), "org_a", memory.Query{Text: "broadband connection is too slow"})
				if err != nil || len(found.Results) != 1 || *found.Results[0].CallID != "call_1" || found.Results[0].Score < 0.3 {
					t.Errorf("memory finds %+v, %v", found, err)
				}
			})
		})
	}
}

// announcedOnce checks the published events.
func (h *fixture) announcedOnce(t *testing.T, sum *transcript.Summary) {
	t.Helper()
	for kind, want := range map[string]string{"call.transcription": `"summary_status":"completed"`, "call.ended": `"enriched":true`} {
		told := h.events(t, kind)
		if len(told) != 1 || !strings.Contains(told[0], want) || !strings.Contains(told[0], sum.AISummary) {
			t.Errorf("%s was told %d times: %v", kind, len(told), told)
		}
	}
}

func TestProcess_SkippedReason(t *testing.T) {
	missing := &transcript.MissingDependency{Problem: "libpocketsphinx.so.3 was not found", Remedy: "apt-get install libpocketsphinx3"}
	for _, c := range []struct {
		name     string
		listener transcript.Recognizer
		reason   string
	}{
		{"switched off", nil, transcript.SkippedDisabled},
		{"no engine", &scriptedRecognizer{err: missing}, transcript.SkippedNoEngine},
		{"nothing was said", &scriptedRecognizer{}, transcript.SkippedNoAudio},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := dbtest.SQLite(t)
			h := newFixture(t, d, c.listener)
			h.playCall(t, "call_1", true)
			tr, sum := h.waitProcessed(t, "call_1")
			if tr.Status != transcript.Skipped || tr.SkippedReason == nil || *tr.SkippedReason != c.reason ||
				sum.Status != transcript.Skipped {
				t.Errorf("transcript %s (%v), summary %s", tr.Status, tr.SkippedReason, sum.Status)
			}
			if c.reason == transcript.SkippedNoEngine && !strings.Contains(tr.Error.Message, "apt-get install") {
				t.Errorf("error %+v names no command that helps", tr.Error)
			}
			if n := len(h.events(t, "call.transcription")); n != 1 {
				t.Errorf("call.transcription was told %d times, want once", n)
			}
			if c, err := h.memory.Caller(context.Background(), "org_a", "+14155550100", 10); err != nil || c.CallsTotal != 1 {
				t.Errorf("the number's history has %+v, %v; want the call", c, err)
			}
		})
	}
}

func TestProcess_FailsAfterThreeAttempts(t *testing.T) {
	d := dbtest.SQLite(t)
	h := newFixture(t, d, &scriptedRecognizer{err: errors.New("engine is on fire")})
	h.playCall(t, "call_1", true)
	tr, sum := h.waitProcessed(t, "call_1")
	if tr.Status != transcript.Failed || tr.Error == nil || !strings.Contains(tr.Error.Message, "on fire") ||
		sum.Status != transcript.Skipped {
		t.Errorf("transcript %s (%+v), summary %s", tr.Status, tr.Error, sum.Status)
	}
	if told := h.events(t, "call.transcription"); len(told) != 1 || !strings.Contains(told[0], `"status":"failed"`) {
		t.Errorf("told %v", told)
	}
}

func TestOf_CallInProgress(t *testing.T) {
	d := dbtest.SQLite(t)
	h := newFixture(t, d, &scriptedRecognizer{lines: append([]string{}, scriptLines...)})
	l := h.service.StartLive("org_a", "call_9", "/nowhere", muLawStereo)
	l.Write(threeUtterances()[:16000*3])
	ctx := context.Background()
	waitUntil(t, "the first segment", func() bool { return len(l.Segments()) == 1 })
	tr, err := h.service.Of(ctx, "org_a", "call_9")
	if err != nil || tr.Status != transcript.InProgress || tr.Text != "Caller: "+scriptLines[0] || !strings.HasPrefix(tr.ID, "trn_") {
		t.Errorf("live transcript is %+v, %v", tr, err)
	}
	if note, err := h.service.SummaryOf(ctx, "org_a", "call_9"); err != nil || note.Status != transcript.Pending || note.CallID != "call_9" {
		t.Errorf("note of a call in progress is %+v, %v", note, err)
	}
	if _, err := h.service.Of(ctx, "org_b", "call_9"); err == nil {
		t.Error("another organisation sees the call")
	}
	if _, err := h.service.SummaryOf(ctx, "org_b", "call_9"); err == nil {
		t.Error("another organisation sees its note")
	}
}
