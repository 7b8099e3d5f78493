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

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/call/calltest"
)

// testOrg is an organisation with a call service on one database.
type testOrg struct{ *calltest.Org }

func newTestOrg(t *testing.T, d *db.DB) *testOrg {
	t.Helper()
	return &testOrg{calltest.New(t, d)}
}

// newOrgWithSwitch is newTestOrg with a simulated switch and a user.
func newOrgWithSwitch(t *testing.T, d *db.DB) (*testOrg, *calltest.Switch) {
	t.Helper()
	o := newTestOrg(t, d)
	x := o.AddSwitch()
	o.Exec(`INSERT INTO users (org_id, id, email, first_name, last_name, role, status, dnd, skills, ring_strategy, forward, voicemail,
		recording_mode, created_at, updated_at)
		VALUES ($1, 'usr_1', 'dana@example.com', 'Dana', '', 'agent', 'active', FALSE, '{}', 'all_devices', '{}', '{}', 'inherit', 1, 1)`)
	return o, x
}

func TestCDR_FromCompletedCall(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newTestOrg(t, d)
		n := o.Begin(call.Internal)
		calltest.Want(t, o.Get(n.ID), "status", "ringing")
		a := o.Answer(n, false)
		calltest.Want(t, o.Get(n.ID), "status", "in_progress")
		o.Must(o.Calls.Held(context.Background(), o.ID, n.ID, "caller", true, a.At.Add(10*time.Second)))
		held := o.Get(n.ID)
		calltest.Want(t, held, "status", "on_hold")
		calltest.Want(t, held, "held", true)
		calltest.Want(t, held["legs"].([]any)[0].(map[string]any), "held_by", "peer")
		o.Must(o.Calls.Held(context.Background(), o.ID, n.ID, "caller", false, a.At.Add(15*time.Second)))
		o.Must(o.Calls.End(context.Background(), call.Ended{New: n, At: a.At.Add(60 * time.Second), AnsweredAt: a.At, Hold: 5 * time.Second,
			Outcome: call.Outcome{Reason: "caller_hangup", HangupBy: "caller", Q850: 16}}))
		r := o.API.Do(optest.Admin(o.ID), "GET", "/cdr/"+n.ID, nil).Body
		for name, value := range map[string]any{"status": "completed", "talk_duration_seconds": 55.0, "hold_seconds": 5.0, "ring_seconds": 4.0,
			"total_seconds": 64.0, "end_reason": "caller_hangup", "hangup_by": "caller", "q850_cause": 16.0, "recording_url": nil} {
			calltest.Want(t, r, name, value)
		}
		if got, want := o.Events(), "call.started call.answered call.ended"; got != want {
			t.Errorf("events: got %s, want %s", got, want)
		}
	})
}

func TestEnd_SecondEndIgnored(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newTestOrg(t, d)
		n := o.Begin(call.Inbound)
		e := call.Ended{New: n, At: o.At.Add(20 * time.Second), Outcome: call.Outcome{Reason: "no_answer", HangupBy: "system",
			SIPStatus: 480}}
		o.Must(o.Calls.End(context.Background(), e))
		e.Reason = "busy"
		o.Must(o.Calls.End(context.Background(), e))
		r := o.Get(n.ID)
		calltest.Want(t, r, "status", "missed")
		calltest.Want(t, r, "missed_reason", "no_answer")
		calltest.Want(t, r, "end_reason", "no_answer")
		if got, want := o.Events(), "call.started call.missed call.ended"; got != want {
			t.Errorf("events: got %s, want %s", got, want)
		}
	})
}

func TestCallEnded_EnrichedAfterTranscript(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newTestOrg(t, d)
		n := o.Begin(call.Internal)
		a := o.Answer(n, true)
		o.Must(o.Calls.End(context.Background(), call.Ended{New: n, At: a.At.Add(time.Minute), AnsweredAt: a.At, Recording: a.Recording.ID,
			Outcome: call.Outcome{Reason: "callee_hangup", HangupBy: "callee"}}))
		done := func(context.Context, db.Querier, string, string, bool) error { return nil }
		audio := call.Audio{Duration: time.Minute, Size: 100, SHA256: "ab", SampleRate: 8000, Channels: 2}
		o.Must(o.Recordings.Recorded(context.Background(), o.ID, n.ID, a.Recording.ID, audio, done))
		announce := func() {
			o.Must(d.Tx(context.Background(), func(tx db.Querier) error {
				o.Must(o.Calls.SetSummary(context.Background(), tx, o.ID, n.ID, "trn_1", "a summary", "neutral"))
				return o.Calls.PublishEnriched(context.Background(), tx, o.ID, n.ID, true)
			}))
		}
		announce()
		announce()
		var late int
		o.Must(d.Read(context.Background()).QueryRow(context.Background(), `SELECT count(*) FROM jobs WHERE kind = 'call.announce' AND state = 0`).Scan(&late))
		if late != 0 {
			t.Errorf("%d jobs are left that would announce it again", late)
		}
		if got, want := o.Events(), "call.started call.answered call.ended:immediate call.recording call.ended:enriched"; got != want {
			t.Errorf("events: got %s, want %s", got, want)
		}
		calltest.Want(t, o.Get(n.ID), "recording_url", "https://soniq.example/api/v1/recordings/"+a.Recording.ID+"/audio")
		calltest.Want(t, o.Get(n.ID), "ai_summary", "a summary")
	})
}

func TestRecover_ClosesCallsAndRecordings(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newTestOrg(t, d)
		cut, ringing := o.Begin(call.Internal), o.Begin(call.Inbound)
		a := o.Answer(cut, true)
		lost := o.Begin(call.Internal)
		b := o.Answer(lost, true)
		alive := a.At.Add(30 * time.Second)
		salvage := func(path string) (call.Audio, error) {
			if strings.Contains(path, lost.ID) {
				return call.Audio{}, os.ErrNotExist
			}
			return call.Audio{Duration: 29 * time.Second, Size: 1, SHA256: "ab", SampleRate: 8000, Channels: 2}, nil
		}
		told := map[string]bool{}
		then := func(_ context.Context, _ db.Querier, _, id string, ok bool) error { told[id] = ok; return nil }
		closed, err := o.Calls.Recover(context.Background(), alive, nil)
		o.Must(err)
		o.Must(o.Recordings.Recover(context.Background(), salvage, then, nil))
		if closed != 3 {
			t.Errorf("closed %d calls, want 3", closed)
		}
		r := o.Get(cut.ID)
		calltest.Want(t, r, "status", "completed")
		calltest.Want(t, r, "end_reason", "node_crash")
		calltest.Want(t, r, "talk_duration_seconds", 30.0)
		calltest.Want(t, o.Get(ringing.ID), "status", "missed")
		if !told[cut.ID] || told[lost.ID] {
			t.Errorf("told of recordings: %v", told)
		}
		failed := o.API.Do(optest.Admin(o.ID), "GET", "/recordings/"+b.Recording.ID, nil)
		calltest.Want(t, failed.Body, "status", "failed")
		if again, err := o.Calls.Recover(context.Background(), alive, nil); err != nil || again != 0 {
			t.Errorf("a second recovery closed %d (%v), want none", again, err)
		}
	})
}

// TestRecover_LastAgentHasRest proves that after a crash the last agent has the time that those before do not have. A leg that left for
// another call has none.
func TestRecover_LastAgentHasRest(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, x := range []struct {
			name string
			end  string // how the last leg of the agent ended before the crash
			want int    // its seconds; -1: none
		}{{"in the call", "", 20}, {"connected to another call", "transfer", -1}} {
			o := newTestOrg(t, d)
			n := o.Begin(call.Internal)
			a := o.Answer(n, false)
			first := call.LegState{ID: db.NewID("leg"), Role: "agent", UserID: "usr_first", Number: "101", Status: "ended", SIPCallID: "sip-1",
				StartedAt: a.At, AnsweredAt: a.At, EndedAt: a.At.Add(10 * time.Second), Work: &call.Work{Talk: 10}}
			last := call.LegState{ID: db.NewID("leg"), Role: "agent", UserID: "usr_last", Number: "102", Status: "answered", SIPCallID: "sip-2",
				StartedAt: a.At.Add(10 * time.Second), AnsweredAt: a.At.Add(10 * time.Second)}
			legs := []call.LegState{first, last}
			if x.end != "" {
				legs = legs[1:]
				last.Status, last.EndReason, last.EndedAt = "ended", x.end, a.At.Add(20*time.Second)
				legs[0] = last
			}
			o.Must(o.Calls.Change(context.Background(), call.Change{Org: o.ID, ID: n.ID, Revision: 2, At: a.At, Row: call.State{
				Status: call.InProgress, Stage: "agent", AnsweredAt: a.At, Agent: call.Party{UserID: "usr_last"}, Recording: "off",
				Consent: "not_required"}, Legs: legs}))
			_, err := o.Calls.Recover(context.Background(), a.At.Add(30*time.Second), nil)
			o.Must(err)
			got := -1
			o.Must(d.Read(context.Background()).QueryRow(context.Background(), `SELECT COALESCE(talk_seconds, -1) FROM legs WHERE id = $1`,
				last.ID).Scan(&got))
			if got != x.want {
				t.Errorf("%s: the last agent has %d s, want %d", x.name, got, x.want)
			}
		}
	})
}

// TestRecording_NamesLostNode proves that a recording, whose node was lost before it finished it, says so until the node
// serves again.
func TestRecording_NamesLostNode(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newTestOrg(t, d)
		a := o.Answer(o.Begin(call.Internal), true)
		_, err := o.Calls.Recover(context.Background(), a.At.Add(time.Minute), nil)
		o.Must(err)
		for _, state := range []string{"serving", "evicted", "gone", "serving"} {
			o.Exec(`INSERT INTO nodes (id, epoch, state, version, joined_at, lease_until)
				VALUES ($2, 1, $3, $1, 0, 0) ON CONFLICT (id) DO UPDATE SET state = excluded.state`, calltest.Node, state)
			for _, path := range []string{"/recordings/" + a.Recording.ID, "/recordings?include_total=true"} {
				r := o.API.Do(optest.Admin(o.ID), "GET", path, nil)
				if lost := strings.Contains(string(r.Bytes), `"code":"node_lost"`); r.Status != 200 || lost != (state != "serving") {
					t.Errorf("%s of a node that is %s: %d %s", path, state, r.Status, r.Bytes)
				}
			}
		}
	})
}

func TestSignedURL_TamperedRefused(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	o := newTestOrg(t, d)
	n := o.Begin(call.Internal)
	a := o.Answer(n, true)
	path, err := o.Files.Path(a.Recording.Name)
	o.Must(err)
	o.Must(os.MkdirAll(filepath.Dir(path), 0o700))
	o.Must(os.WriteFile(path, []byte("RIFF-not-really"), 0o600))
	o.Must(o.Recordings.Recorded(context.Background(), o.ID, n.ID, a.Recording.ID, call.Audio{SHA256: "ab", Channels: 2},
		func(context.Context, db.Querier, string, string, bool) error { return nil }))
	r := o.API.Do(optest.Admin(o.ID), "GET", "/calls/"+n.ID+"/recording", nil)
	address := strings.TrimPrefix(r.Body["url"].(string), "https://soniq.example/api/v1")
	stranger := optest.Admin("")
	if got := o.API.Do(stranger, "GET", address, nil); got.Status != 200 || string(got.Bytes) != "RIFF-not-really" {
		t.Errorf("signed address: %d %s", got.Status, got.Bytes)
	}
	if got := o.API.Do(stranger, "GET", strings.Replace(address, "expires=1", "expires=2", 1), nil); got.Status != 401 {
		t.Errorf("changed address: got %d, want 401", got.Status)
	}
	if got := o.API.Do(stranger, "GET", "/recordings/"+a.Recording.ID+"/audio", nil); got.Status != 401 {
		t.Errorf("no signature: got %d, want 401", got.Status)
	}
	f, _, err := o.Recordings.File(context.Background(), o.ID, n.ID)
	o.Must(err)
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || string(b) != "RIFF-not-really" {
		t.Errorf("file: %s %v", b, err)
	}
	if _, _, err := o.Recordings.File(context.Background(), "org_other", n.ID); !errors.Is(err, db.ErrNone) {
		t.Errorf("another organisation's file: %v", err)
	}
}

func TestStatus_FinalStates(t *testing.T) {
	t.Parallel()
	final := map[call.Status]bool{call.Completed: true, call.Missed: true, call.NoAnswer: true, call.Busy: true, call.Failed: true,
		call.Canceled: true}
	for _, s := range call.Statuses {
		if s.Final() != final[s] {
			t.Errorf("%s: final %v, want %v", s, s.Final(), final[s])
		}
	}
	if !call.Ringing.Can(call.InProgress) || call.Completed.Can(call.InProgress) || call.Ringing.Can(call.OnHold) {
		t.Error("the moves between states are not those of the table")
	}
}
