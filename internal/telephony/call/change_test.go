package call_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op/optest"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/call/calltest"
)

// placedCall is an outbound call with a caller's leg and a recording, and the next change to write.
type placedCall struct {
	*testOrg
	call.New
	next call.Change
}

func (o *testOrg) place() *placedCall {
	o.T.Helper()
	n := call.New{Org: o.ID, ID: db.NewID("call"), Direction: call.Outbound, Source: "api", From: "+12025550142", To: "+12025550199",
		StartedAt: o.At, Status: call.Queued, UserID: "usr_1", Metadata: map[string]string{"order": "7"}, Reference: "ref-1",
		CallerLeg: db.NewID("leg"), CallerSIP: "sip-1", CallerDev: "dev_1", CallerUser: "usr_1"}
	o.Must(o.Calls.Begin(context.Background(), n))
	return &placedCall{testOrg: o, New: n, next: call.Change{Org: o.ID, ID: n.ID, At: o.At}}
}

// writeChange writes the next change.
func (p *placedCall) writeChange(events ...event.Payload) {
	p.T.Helper()
	p.next.Revision++
	p.next.Events = events
	p.Must(p.Calls.Change(context.Background(), p.next))
}

func (p *placedCall) writeAnswer() {
	p.T.Helper()
	p.prepareAnswer()
	p.Must(p.Calls.Change(context.Background(), p.next))
}

// prepareAnswer turns the next change into that of an answer.
func (p *placedCall) prepareAnswer() {
	at := p.At.Add(5 * time.Second)
	p.next.Row = call.State{Status: call.InProgress, Stage: "agent", RingingAt: p.At.Add(time.Second), AnsweredAt: at,
		Ring: 5 * time.Second, AnsweredBy: "callee", Agent: call.Party{UserID: "usr_1", Name: "Dana", Extension: "100"},
		Recording: "recording", RecordingID: "rec_1",
		Consent: "announced"}
	p.next.Legs = []call.LegState{
		{ID: p.CallerLeg, Role: "caller", UserID: "usr_1", DeviceID: "dev_1", Number: "100", Status: "answered", Codec: "OPUS", SRTP: true,
			SIPCallID: "sip-1", StartedAt: p.At, AnsweredAt: at},
		{ID: db.NewID("leg"), Role: "callee", TrunkID: "trk_1", Number: "+12025550199", Status: "answered", Codec: "PCMU", SIPCallID: "sip-2",
			StartedAt: p.At.Add(time.Second), AnsweredAt: at}}
	p.next.Recordings = []call.RecordingChange{{ID: "rec_1", Status: "recording", New: &call.NewRecording{ID: "rec_1",
		Name: call.BlobName(p.testOrg.ID, p.ID, p.At), Consent: "announced", Trigger: "api", SampleRate: 16000}}}
	p.next.Dialogs = json.RawMessage(`{"a":{"cseq":7}}`)
	p.next.Revision++
	p.next.Events = []event.Payload{event.CallAnswered{CallID: p.ID}}
}

func TestChange_OlderRevisionIgnored(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := newTestOrg(t, d).place()
		calltest.Want(t, p.Get(p.ID), "status", "queued")
		calltest.Want(t, p.Get(p.ID), "ringing_at", nil)
		p.writeAnswer()
		p.next.Row.Status, p.next.Row.HeldSince, p.next.Row.Muted = call.OnHold, p.At.Add(10*time.Second), true
		p.next.Row.Transfer = &call.TransferState{Mode: "warm", To: "ext:101", Status: "consulting", StartedAt: p.At.Add(10 * time.Second)}
		p.next.Legs[1].Status, p.next.Legs[1].HeldBy = "held", "api"
		p.next.Monitors = []call.MonitorState{{ID: "mon_1", SupervisorID: "usr_2", Mode: "listen", Status: "active", StartedAt: p.At}}
		p.next.Recordings = []call.RecordingChange{{ID: "rec_1", Status: "paused", Pauses: []call.Pause{{FromMS: 100, Reason: "payment"}}}}
		p.writeChange(event.CallHeld{CallID: p.ID, By: "api"})
		held := p.Get(p.ID)
		for name, value := range map[string]any{"status": "on_hold", "held": true, "muted": true, "client_reference": "ref-1", "agent_id": "usr_1"} {
			calltest.Want(t, held, name, value)
		}
		calltest.Want(t, held["transfer"].(map[string]any), "status", "consulting")
		calltest.Want(t, held["transfer"].(map[string]any), "started_at", db.At(p.At.Add(10*time.Second)).String())
		legs := held["legs"].([]any)
		calltest.Want(t, legs[0].(map[string]any), "srtp", true)
		calltest.Want(t, legs[1].(map[string]any), "held_by", "api")
		r := p.API.Do(optest.Admin(p.testOrg.ID), "GET", "/recordings/rec_1", nil)
		calltest.Want(t, r.Body, "status", "paused")
		calltest.Want(t, r.Body, "sample_rate_hz", 16000.0)
		if got := r.At("pauses.0.reason"); got != "payment" {
			t.Errorf("pause: %s", r.Bytes)
		}
		told := p.Events()
		if want := "call.started call.answered call.held:stream"; told != want {
			t.Errorf("events %s, want %s", told, want)
		}
		p.next.Row.Muted = false // the same revision again, then an older one
		p.Must(p.Calls.Change(context.Background(), p.next))
		p.next.Revision = 1
		p.Must(p.Calls.Change(context.Background(), p.next))
		calltest.Want(t, p.Get(p.ID), "muted", true)
		if again := p.Events(); again != told {
			t.Errorf("events %s after an old change, want %s", again, told)
		}
	})
}

func TestEnd_WrittenStateNotRewritten(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, missed := range []bool{false, true} {
			p := newTestOrg(t, d).place()
			p.writeAnswer()
			revision := p.next.Revision
			p.next.Row.TransferredTo = "ext:101"
			if missed { // the change with the state was not written
				revision++
			}
			p.Must(p.Calls.End(context.Background(), call.Ended{New: p.New, Revision: revision, State: p.next.Row, StateWritten: true,
				Legs: p.next.Legs, At: p.At.Add(65 * time.Second), AnsweredAt: p.next.Row.AnsweredAt,
				Outcome: call.Outcome{Reason: "api", HangupBy: "api"}}))
			c := p.Get(p.ID)
			calltest.Want(t, c, "status", "completed")
			calltest.Want(t, c, "end_reason", "api")
			calltest.Want(t, c, "talk_duration_seconds", 60.0)
			to := any(nil) // End does not write a state that a Change has stored
			if missed {
				to = "ext:101"
			}
			calltest.Want(t, p.API.Do(optest.Admin(p.testOrg.ID), "GET", "/cdr/"+p.ID, nil).Body, "transferred_to", to)
		}
	})
}

func TestEnd_ClosesLegsMonitorsRecordings(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := newTestOrg(t, d).place()
		p.writeAnswer()
		p.next.Monitors = []call.MonitorState{{ID: "mon_1", SupervisorID: "usr_2", Mode: "listen", Status: "active", StartedAt: p.At}}
		p.writeChange()
		good, bad := call.Quality{MOSAverage: 4.3, Packets: 500}, call.Quality{MOSAverage: 2.1, Packets: 500, LossRate: 7.5,
			JitterMSAverage: 31, RTTMS: 140}
		text, err := json.Marshal(call.LegQuality{Received: &good, Sent: &bad})
		p.Must(err)
		p.next.Legs[1].Quality, p.next.Legs[1].Status, p.next.Legs[1].EndedAt = text, "ended", p.At.Add(50*time.Second)
		p.next.Row.TransferredTo = "ext:101"
		p.Must(p.Calls.End(context.Background(), call.Ended{New: p.New, Revision: p.next.Revision, State: p.next.Row, Legs: p.next.Legs,
			At: p.At.Add(65 * time.Second), AnsweredAt: p.next.Row.AnsweredAt, Recording: "rec_1",
			Outcome: call.Outcome{Reason: "api", HangupBy: "api"}}))
		c := p.Get(p.ID)
		calltest.Want(t, c, "status", "completed")
		calltest.Want(t, c, "talk_duration_seconds", 60.0)
		calltest.Want(t, c["quality"].(map[string]any), "mos", 2.1)
		calltest.Want(t, c["quality"].(map[string]any), "packet_loss_rate", 7.5)
		for _, l := range c["legs"].([]any) {
			calltest.Want(t, l.(map[string]any), "status", "ended")
		}
		calltest.Want(t, p.API.Do(optest.Admin(p.testOrg.ID), "GET", "/cdr/"+p.ID, nil).Body, "transferred_to", "ext:101")
		calltest.Want(t, p.API.Do(optest.Admin(p.testOrg.ID), "GET", "/recordings/rec_1", nil).Body, "status", "processing")
		p.next.Row.Status = call.InProgress
		p.writeChange(event.CallHeld{CallID: p.ID}) // after the end
		calltest.Want(t, p.Get(p.ID), "status", "completed")
		if left, err := p.Calls.ResumableCalls(context.Background()); err != nil || len(left) != 0 {
			t.Errorf("an ended call is left to carry on: %v %v", left, err)
		}
	})
}

func TestResumableCalls_AfterRestart(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newTestOrg(t, d)
		p := o.place()
		p.writeAnswer()
		p.next.Dialogs, p.next.Row.Muted = nil, true
		p.writeChange()
		cut := o.Begin(call.Internal) // without dialogs
		all, err := o.Calls.ResumableCalls(context.Background())
		o.Must(err)
		if len(all) != 1 {
			t.Fatalf("%d calls to carry on, want 1", len(all))
		}
		x := all[0]
		if x.New.ID != p.ID || x.New.Metadata["order"] != "7" || x.New.Reference != "ref-1" || x.New.CallerLeg != p.CallerLeg ||
			x.New.CallerSIP != "sip-1" || x.New.CallerDev != "dev_1" || !x.New.StartedAt.Equal(p.At) {
			t.Errorf("begun as %+v", x.New)
		}
		if !x.State.Muted || x.State.Agent.Name != "Dana" || !x.State.AnsweredAt.Equal(p.next.Row.AnsweredAt) || x.Revision != 2 {
			t.Errorf("state %+v, revision %d", x.State, x.Revision)
		}
		if string(x.Dialogs) != `{"a":{"cseq":7}}` || len(x.Legs) != 2 || !x.Legs[0].SRTP || x.Legs[1].TrunkID != "trk_1" {
			t.Errorf("dialogs %s, legs %+v", x.Dialogs, x.Legs)
		}
		if len(x.Recordings) != 1 || x.Recordings[0].Status != "recording" {
			t.Errorf("recordings %+v", x.Recordings)
		}
		resumed := func(_, id string) bool { return id == p.ID }
		closed, err := o.Calls.Recover(context.Background(), o.At.Add(time.Minute), resumed)
		o.Must(err)
		o.Must(o.Recordings.Recover(context.Background(), nil, nil, resumed))
		calltest.Want(t, o.Get(p.ID), "status", "in_progress")
		calltest.Want(t, o.Get(cut.ID), "end_reason", "node_crash")
		if closed != 1 {
			t.Errorf("closed %d calls, want 1", closed)
		}
	})
}
