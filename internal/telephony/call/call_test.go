package call_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/blob"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op/optest"
	"soniq/internal/telephony/call"
)

// testOrg is an organisation with a call service on one database.
type testOrg struct {
	t     *testing.T
	db    *db.DB
	calls *call.Service
	api   *optest.Server
	org   string
	files *blob.Dir
	at    time.Time
}

func newTestOrg(t *testing.T, d *db.DB) *testOrg {
	t.Helper()
	b := bus.New()
	o, err := org.New(d, b, time.Now).Create(context.Background(), "Test", "US")
	if err != nil {
		t.Fatal(err)
	}
	files, err := blob.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := call.NewService(call.Config{DB: d, Outbox: &event.Outbox{DB: d, Bus: b, Now: func() db.Time { return db.At(time.Now()) }},
		Jobs: &job.Queue{Bus: b, Now: time.Now}, Files: files, Node: "node_a", BaseURL: "https://soniq.example", URLKey: []byte("key"), Now: time.Now})
	return &testOrg{t, d, s, optest.New(t, d, s.Operations()...), o.ID, files, time.Now().Add(-time.Hour).Truncate(time.Second)}
}

func (o *testOrg) must(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

func (o *testOrg) begin(d call.Direction) call.New {
	o.t.Helper()
	n := call.New{Org: o.org, ID: db.NewID("call"), Direction: d, Source: "device", From: "+12025550142", To: "100", StartedAt: o.at,
		CallerSIP: "sip-1"}
	o.must(o.calls.Begin(context.Background(), n))
	return n
}

func (o *testOrg) answer(n call.New, recorded bool) call.Answer {
	o.t.Helper()
	a := call.Answer{Org: o.org, ID: n.ID, At: o.at.Add(4 * time.Second), Ring: 4 * time.Second, Codec: "PCMU",
		By: call.Party{Role: "agent", UserID: "usr_1", Name: "Dana", Extension: "100", Number: "100", SIPCallID: "sip-2"}}
	if recorded {
		a.Recording = &call.NewRecording{ID: db.NewID("rec"), Name: call.BlobName(o.org, n.ID, o.at), Consent: "not_required", Trigger: "policy"}
	}
	o.must(o.calls.Answered(context.Background(), n, a))
	return a
}

// events returns the kinds in the outbox in order, each with its audience unless that is "all".
func (o *testOrg) events() string {
	o.t.Helper()
	rows, err := o.db.Read(context.Background()).Query(context.Background(),
		`SELECT kind, audience FROM events WHERE org_id = $1 ORDER BY id`, o.org)
	o.must(err)
	defer rows.Close()
	var all []string
	for rows.Next() {
		var kind, audience string
		o.must(rows.Scan(&kind, &audience))
		if audience != "all" {
			kind += ":" + audience
		}
		all = append(all, kind)
	}
	return strings.Join(all, " ")
}

func (o *testOrg) get(id string) map[string]any {
	o.t.Helper()
	a := o.api.Do(optest.Admin(o.org), "GET", "/calls/"+id+"?expand=legs", nil)
	if a.Status != 200 {
		o.t.Fatalf("GET call: %d %s", a.Status, a.Bytes)
	}
	return a.Body
}

func want(t *testing.T, of map[string]any, name string, value any) {
	t.Helper()
	if of[name] != value {
		t.Errorf("%s: got %v, want %v", name, of[name], value)
	}
}

func TestCDR_FromCompletedCall(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newTestOrg(t, d)
		n := o.begin(call.Internal)
		want(t, o.get(n.ID), "status", "ringing")
		a := o.answer(n, false)
		want(t, o.get(n.ID), "status", "in_progress")
		o.must(o.calls.Held(context.Background(), o.org, n.ID, "caller", true, a.At.Add(10*time.Second)))
		held := o.get(n.ID)
		want(t, held, "status", "on_hold")
		want(t, held, "held", true)
		want(t, held["legs"].([]any)[0].(map[string]any), "held_by", "peer")
		o.must(o.calls.Held(context.Background(), o.org, n.ID, "caller", false, a.At.Add(15*time.Second)))
		o.must(o.calls.End(context.Background(), call.Ended{New: n, At: a.At.Add(60 * time.Second), AnsweredAt: a.At, Hold: 5 * time.Second,
			Outcome: call.Outcome{Reason: "caller_hangup", HangupBy: "caller", Q850: 16}}))
		r := o.api.Do(optest.Admin(o.org), "GET", "/cdr/"+n.ID, nil).Body
		for name, value := range map[string]any{"status": "completed", "talk_duration_seconds": 55.0, "hold_seconds": 5.0, "ring_seconds": 4.0,
			"total_seconds": 64.0, "end_reason": "caller_hangup", "hangup_by": "caller", "q850_cause": 16.0, "recording_url": nil} {
			want(t, r, name, value)
		}
		if got, want := o.events(), "call.started call.answered call.ended"; got != want {
			t.Errorf("events: got %s, want %s", got, want)
		}
	})
}

func TestEnd_SecondEndIgnored(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newTestOrg(t, d)
		n := o.begin(call.Inbound)
		e := call.Ended{New: n, At: o.at.Add(20 * time.Second), Outcome: call.Outcome{Reason: "no_answer", HangupBy: "system", SIPStatus: 480}}
		o.must(o.calls.End(context.Background(), e))
		e.Reason = "busy"
		o.must(o.calls.End(context.Background(), e))
		r := o.get(n.ID)
		want(t, r, "status", "missed")
		want(t, r, "missed_reason", "no_answer")
		want(t, r, "end_reason", "no_answer")
		if got, want := o.events(), "call.started call.missed call.ended"; got != want {
			t.Errorf("events: got %s, want %s", got, want)
		}
	})
}

func TestCallEnded_EnrichedAfterTranscript(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newTestOrg(t, d)
		n := o.begin(call.Internal)
		a := o.answer(n, true)
		o.must(o.calls.End(context.Background(), call.Ended{New: n, At: a.At.Add(time.Minute), AnsweredAt: a.At, Recording: a.Recording.ID,
			Outcome: call.Outcome{Reason: "callee_hangup", HangupBy: "callee"}}))
		done := func(context.Context, db.Querier, string, string, bool) error { return nil }
		audio := call.Audio{Duration: time.Minute, Size: 100, SHA256: "ab", SampleRate: 8000, Channels: 2}
		o.must(o.calls.Recorded(context.Background(), o.org, n.ID, a.Recording.ID, audio, done))
		announce := func() {
			o.must(d.Tx(context.Background(), func(tx db.Querier) error {
				o.must(o.calls.SetSummary(context.Background(), tx, o.org, n.ID, "trn_1", "a summary", "neutral"))
				return o.calls.PublishEnriched(context.Background(), tx, o.org, n.ID, true)
			}))
		}
		announce()
		announce()
		var late int
		o.must(d.Read(context.Background()).QueryRow(context.Background(), `SELECT count(*) FROM jobs WHERE kind = 'call.announce' AND state = 0`).Scan(&late))
		if late != 0 {
			t.Errorf("%d jobs are left that would announce it again", late)
		}
		if got, want := o.events(), "call.started call.answered call.ended:immediate call.recording call.ended:enriched"; got != want {
			t.Errorf("events: got %s, want %s", got, want)
		}
		want(t, o.get(n.ID), "recording_url", "https://soniq.example/api/v1/recordings/"+a.Recording.ID+"/audio")
		want(t, o.get(n.ID), "ai_summary", "a summary")
	})
}

func TestRecover_ClosesCallsAndRecordings(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newTestOrg(t, d)
		cut, ringing := o.begin(call.Internal), o.begin(call.Inbound)
		a := o.answer(cut, true)
		lost := o.begin(call.Internal)
		b := o.answer(lost, true)
		alive := a.At.Add(30 * time.Second)
		salvage := func(path string) (call.Audio, error) {
			if strings.Contains(path, lost.ID) {
				return call.Audio{}, os.ErrNotExist
			}
			return call.Audio{Duration: 29 * time.Second, Size: 1, SHA256: "ab", SampleRate: 8000, Channels: 2}, nil
		}
		told := map[string]bool{}
		then := func(_ context.Context, _ db.Querier, _, id string, ok bool) error { told[id] = ok; return nil }
		closed, err := o.calls.Recover(context.Background(), alive, salvage, then, nil)
		o.must(err)
		if closed != 3 {
			t.Errorf("closed %d calls, want 3", closed)
		}
		r := o.get(cut.ID)
		want(t, r, "status", "completed")
		want(t, r, "end_reason", "node_crash")
		want(t, r, "talk_duration_seconds", 30.0)
		want(t, o.get(ringing.ID), "status", "missed")
		if !told[cut.ID] || told[lost.ID] {
			t.Errorf("told of recordings: %v", told)
		}
		failed := o.api.Do(optest.Admin(o.org), "GET", "/recordings/"+b.Recording.ID, nil)
		want(t, failed.Body, "status", "failed")
		if again, err := o.calls.Recover(context.Background(), alive, salvage, then, nil); err != nil || again != 0 {
			t.Errorf("a second recovery closed %d (%v), want none", again, err)
		}
	})
}

func TestSignedURL_TamperedRefused(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	o := newTestOrg(t, d)
	n := o.begin(call.Internal)
	a := o.answer(n, true)
	path, err := o.files.Path(a.Recording.Name)
	o.must(err)
	o.must(os.MkdirAll(filepath.Dir(path), 0o700))
	o.must(os.WriteFile(path, []byte("RIFF-not-really"), 0o600))
	o.must(o.calls.Recorded(context.Background(), o.org, n.ID, a.Recording.ID, call.Audio{SHA256: "ab", Channels: 2},
		func(context.Context, db.Querier, string, string, bool) error { return nil }))
	r := o.api.Do(optest.Admin(o.org), "GET", "/calls/"+n.ID+"/recording", nil)
	address := strings.TrimPrefix(r.Body["url"].(string), "https://soniq.example/api/v1")
	stranger := optest.Admin("")
	if got := o.api.Do(stranger, "GET", address, nil); got.Status != 200 || string(got.Bytes) != "RIFF-not-really" {
		t.Errorf("signed address: %d %s", got.Status, got.Bytes)
	}
	if got := o.api.Do(stranger, "GET", strings.Replace(address, "expires=1", "expires=2", 1), nil); got.Status != 401 {
		t.Errorf("changed address: got %d, want 401", got.Status)
	}
	if got := o.api.Do(stranger, "GET", "/recordings/"+a.Recording.ID+"/audio", nil); got.Status != 401 {
		t.Errorf("no signature: got %d, want 401", got.Status)
	}
	f, _, err := o.calls.File(context.Background(), o.org, n.ID)
	o.must(err)
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || string(b) != "RIFF-not-really" {
		t.Errorf("file: %s %v", b, err)
	}
	if _, _, err := o.calls.File(context.Background(), "org_other", n.ID); !errors.Is(err, db.ErrNone) {
		t.Errorf("another organisation's file: %v", err)
	}
}

func TestStatus_FinalStates(t *testing.T) {
	t.Parallel()
	final := map[call.Status]bool{call.Completed: true, call.Missed: true, call.NoAnswer: true, call.Busy: true, call.Failed: true, call.Canceled: true}
	for _, s := range call.Statuses {
		if s.Final() != final[s] {
			t.Errorf("%s: final %v, want %v", s, s.Final(), final[s])
		}
	}
	if !call.Ringing.Can(call.InProgress) || call.Completed.Can(call.InProgress) || call.Ringing.Can(call.OnHold) {
		t.Error("the moves between states are not those of the table")
	}
}
