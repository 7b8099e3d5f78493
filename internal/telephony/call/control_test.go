package call_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op"
	"soniq/internal/platform/op/optest"
	"soniq/internal/telephony/call"
)

// fakeSwitch records the commands and placements it gets.
type fakeSwitch struct {
	calls *call.Service

	mu         sync.Mutex // guards commands and placements
	commands   []call.Command
	placements []call.Placement

	reply    func(id string, c call.Command) (call.Result, error)
	timeline call.Timeline
}

func (x *fakeSwitch) Place(ctx context.Context, p call.Placement) error {
	x.mu.Lock()
	x.placements = append(x.placements, p)
	x.mu.Unlock()
	return x.calls.Begin(ctx, call.New{Org: p.Org, ID: p.ID, Direction: call.Outbound, Source: p.Source, From: p.From, To: p.To,
		UserID: p.UserID, StartedAt: time.Now(), Status: call.Queued, Metadata: p.Metadata, Reference: p.Reference, Purpose: p.Reason, By: p.By})
}

func (x *fakeSwitch) Do(_ context.Context, _, id string, c call.Command) (call.Result, error) {
	x.mu.Lock()
	x.commands = append(x.commands, c)
	x.mu.Unlock()
	if x.reply == nil {
		return call.Result{}, nil
	}
	return x.reply(id, c)
}

func (x *fakeSwitch) Timeline(string, string) (call.Timeline, bool) {
	return x.timeline, len(x.timeline.Steps) > 0
}

func (x *fakeSwitch) lastCommand() call.Command {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.commands[len(x.commands)-1]
}

// newOrgWithSwitch is newTestOrg with a fakeSwitch and a user.
func newOrgWithSwitch(t *testing.T, d *db.DB) (*testOrg, *fakeSwitch) {
	t.Helper()
	o := newTestOrg(t, d)
	x := &fakeSwitch{calls: o.calls}
	o.calls.Switch = x
	o.calls.Destinations = fakeDestinations{parse: func(to string) (string, error) {
		switch {
		case to == "911":
			return "", op.Fail("destination_not_allowed", "a person has to")
		case strings.HasPrefix(to, "+") || strings.HasPrefix(to, "ext:"):
			return to, nil
		}
		return "", op.Invalid(op.Field("to", "invalid_e164", "not a valid number"))
	}}
	o.exec(`INSERT INTO users (org_id, id, email, first_name, last_name, role, status, dnd, skills, ring_strategy, forward, voicemail,
		recording_mode, created_at, updated_at)
		VALUES ($1, 'usr_1', 'dana@example.com', 'Dana', '', 'agent', 'active', FALSE, '{}', 'all_devices', '{}', '{}', 'inherit', 1, 1)`)
	return o, x
}

func (o *testOrg) exec(q string, args ...any) {
	o.t.Helper()
	o.must(o.db.Tx(context.Background(), func(tx db.Querier) error {
		_, err := tx.Exec(context.Background(), q, append([]any{o.org}, args...)...)
		return err
	}))
}

func (o *testOrg) do(method, path string, body any, header ...string) *optest.Answer {
	o.t.Helper()
	return o.api.Do(optest.Admin(o.org), method, path, body, header...)
}

func TestCreate_StoredBeforeResponse(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o, x := newOrgWithSwitch(t, d)
		a := o.do("POST", "/calls", map[string]any{"to": "+12025550143", "user_id": "usr_1", "reason": "asked to be called", "record": "on",
			"metadata": map[string]string{"order": "7"}, "headers": map[string]string{"X-Campaign": "spring"}, "client_reference": "r1"}).Want(201)
		want(t, a.Body, "status", "queued")
		want(t, a.Body, "client_reference", "r1")
		want(t, a.Body, "notes_count", 1.0)
		p := x.placements[0]
		if p.To != "+12025550143" || p.UserID != "usr_1" || p.RingTimeout != 30*time.Second || p.MaxDuration != 4*time.Hour || p.Record != "on" ||
			p.Headers["X-Campaign"] != "spring" || p.Machine != "off" {
			t.Errorf("placed %+v", p)
		}
		if got := a.Header.Get("Location"); got != "/api/v1/calls/"+a.Text("id") {
			t.Errorf("location %s", got)
		}
		notes := o.do("GET", "/calls/"+a.Text("id")+"?expand=notes", nil).Want(200)
		if notes.At("notes.0.body") != "asked to be called" || notes.At("notes.0.author.type") != "api_key" {
			t.Errorf("notes %s", notes.Bytes)
		}
	})
}

func TestCreate_AllViolationsReported(t *testing.T) {
	t.Parallel()
	o, x := newOrgWithSwitch(t, dbtest.SQLite(t))
	long := strings.Repeat("x", 501)
	o.do("POST", "/calls", map[string]any{"to": "nobody", "from": "+12025550000", "ring_timeout_seconds": 4, "max_duration_seconds": 0,
		"record": "maybe", "machine_detection": "yes", "reason": long, "client_reference": long, "announce_text": strings.Repeat(long, 2),
		"headers":  map[string]string{"Via": "x", "X-Ok": "a\r\nb"},
		"metadata": map[string]string{"k": long}}).Refused("validation_failed", "to invalid_e164", "from number_not_owned", "user_id required",
		"ring_timeout_seconds out_of_range", "max_duration_seconds out_of_range", "record invalid_value", "machine_detection invalid_value",
		"reason too_long", "client_reference too_long", "announce_text too_long", "headers.Via not_allowed", "headers.X-Ok invalid_value",
		"metadata.k too_long")
	o.do("POST", "/calls", map[string]any{"to": "+12025550143", "user_id": "usr_none", "device_id": "dev_none"}).
		Refused("validation_failed", "user_id not_found", "device_id not_found")
	o.do("POST", "/calls", map[string]any{"to": "911", "user_id": "usr_1"}).Want(422).Refused("destination_not_allowed")
	o.do("POST", "/calls", map[string]any{"to": "+12025550143", "user_id": "usr_1", "from": "+12025550000"}).Want(422).Refused("number_not_owned")
	o.do("POST", "/calls", map[string]any{"to": "+12025550143", "flow_id": "flw_1", "user_id": "usr_1"}).Refused("validation_failed", "flow_id conflict", "flow_id not_found")
	o.do("POST", "/calls", map[string]any{"to": "+12025550143", "nonsense": 1}).Want(400).Refused("unknown_field")
	if len(x.placements) != 0 {
		t.Errorf("placed %d calls", len(x.placements))
	}
}

func TestCreate_RateLimits(t *testing.T) {
	t.Parallel()
	o, x := newOrgWithSwitch(t, dbtest.SQLite(t))
	now := time.Now()
	o.calls.Now = func() time.Time { return now }
	place := func(to string) *optest.Answer {
		return o.do("POST", "/calls", map[string]any{"to": to, "user_id": "usr_1"})
	}
	for i := range 4 {
		place(fmt.Sprintf("+1202555010%d", i)).Want(201)
	}
	if a := place("+12025550100").Want(429).Refused("rate_limited"); a.Header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After %q", a.Header.Get("Retry-After"))
	}
	place("+12025550105").Want(201)
	place("+12025550106").Want(429)
	now = now.Add(time.Second)
	place("+12025550100").Want(201)
	if len(x.placements) != 6 {
		t.Errorf("placed %d calls, want 6", len(x.placements))
	}
}

func TestActions_SendCommands(t *testing.T) {
	t.Parallel()
	o, x := newOrgWithSwitch(t, dbtest.SQLite(t))
	p := o.place()
	p.writeAnswer()
	for _, c := range []struct {
		path string
		body any
		want call.Command
	}{
		{"end", nil, call.End{}},
		{"end", map[string]any{"reason": "wrong number"}, call.End{Reason: "wrong number"}},
		{"hold", map[string]any{}, call.Hold{}},
		{"unhold", nil, call.Unhold{}},
		{"mute", nil, call.Mute{On: true}},
		{"unmute", map[string]any{"leg_id": "leg_1"}, call.Mute{LegID: "leg_1"}},
		{"answer", nil, call.Accept{}},
		{"announce", map[string]any{"text": "hello"}, call.Announce{Text: "hello", To: "all"}},
		{"transfer", map[string]any{"to": "ext:101"}, call.Transfer{To: "ext:101", Timeout: 25 * time.Second, OnFail: "return"}},
		{"transfer", map[string]any{"to": "user:usr_1", "mode": "warm", "timeout_seconds": 5, "on_fail": "hangup", "summary_to_target": false},
			call.Transfer{To: "user:usr_1", Warm: true, Timeout: 5 * time.Second, OnFail: "hangup", NoScreenPop: true}},
		{"transfer", map[string]any{"to": "ext:101", "summary_to_target": true}, call.Transfer{To: "ext:101", Timeout: 25 * time.Second, OnFail: "return"}},
		{"transfer/complete", nil, call.CompleteTransfer{}},
		{"transfer/complete", map[string]any{"mode": "conference"}, call.CompleteTransfer{Conference: true}},
		{"transfer/cancel", nil, call.CancelTransfer{}},
		{"recording/start", nil, call.StartRecording{Channels: 2, Trigger: "api"}},
		{"recording/stop", nil, call.StopRecording{}},
		{"recording/pause", map[string]any{"reason": "payment", "auto_resume_seconds": 30}, call.PauseRecording{Reason: "payment", AutoResume: 30 * time.Second}},
		{"recording/resume", nil, call.ResumeRecording{}},
	} {
		a := o.do("POST", "/calls/"+p.ID+"/"+c.path, c.body).Want(200)
		want(t, a.Body, "id", p.ID)
		if len(a.Body["legs"].([]any)) != 2 {
			t.Errorf("%s answers without legs", c.path)
		}
		if got := x.lastCommand(); got != c.want {
			t.Errorf("%s: the switch was told %#v, want %#v", c.path, got, c.want)
		}
	}
}

func TestActions_RefusalReasons(t *testing.T) {
	t.Parallel()
	o, x := newOrgWithSwitch(t, dbtest.SQLite(t))
	p := o.place()
	p.writeAnswer()
	at := "/calls/" + p.ID
	o.do("POST", "/calls/call_none/hold", nil).Want(404)
	o.api.Do(optest.Admin(db.NewID("org")), "POST", at+"/end", nil).Want(404)
	o.do("POST", at+"/hold", map[string]any{"audio_id": "aud_none"}).Refused("validation_failed", "audio_id not_found")
	o.do("POST", at+"/announce", map[string]any{}).Refused("validation_failed", "audio_id required")
	o.do("POST", at+"/transfer", map[string]any{"to": "queue:que_1"}).Want(422).Refused("validation_failed", "to not_found")
	o.do("POST", at+"/transfer", map[string]any{"to": "100", "mode": "cold", "timeout_seconds": 1, "on_fail": "cry"}).
		Refused("validation_failed", "to invalid_e164", "mode invalid_value", "timeout_seconds out_of_range", "on_fail invalid_value")
	o.do("POST", at+"/dtmf", map[string]any{"digits": "12x"}).Want(422)
	if len(x.commands) != 0 {
		t.Errorf("the switch was told %v", x.commands)
	}
	x.reply = func(string, call.Command) (call.Result, error) { return call.Result{}, context.DeadlineExceeded }
	o.do("POST", at+"/hold", nil).Want(504).Refused("action_timeout")
	x.reply = func(string, call.Command) (call.Result, error) { return call.Result{}, op.NotFound("call in progress") }
	o.do("POST", at+"/hold", nil).Want(409).Refused("invalid_state")
	x.reply = func(string, call.Command) (call.Result, error) {
		return call.Result{}, op.State("it rings", "ringing", "end")
	}
	o.do("POST", at+"/hold", nil).Want(409).Refused("invalid_state")
	o.calls.Switch = nil
	o.do("POST", at+"/hold", nil).Want(503).Refused("draining")
	o.must(o.calls.End(context.Background(), call.Ended{New: p.New, At: o.at.Add(time.Minute), Outcome: call.Outcome{Reason: "api"}}))
	again := o.do("POST", at+"/end", nil).Want(200) // idempotent: the call has ended already
	want(t, again.Body, "status", "canceled")
	want(t, again.Body, "end_reason", "api")
	o.do("POST", at+"/end", nil, "Prefer: respond-async").Want(200)
	for _, action := range []string{"/unhold", "/mute", "/transfer/complete", "/transfer/cancel"} {
		o.do("POST", at+action, nil).Want(409).Refused("invalid_state")
	}
	ended := o.do("POST", at+"/hold", nil).Want(409).Refused("invalid_state")
	if ended.Text("current_status") != "canceled" || fmt.Sprint(ended.At("allowed_actions")) != "[note tag]" {
		t.Errorf("refused with %s", ended.Bytes)
	}
}

func TestAsyncAction_RespondsBeforeConfirmation(t *testing.T) {
	t.Parallel()
	o, x := newOrgWithSwitch(t, dbtest.SQLite(t))
	p := o.place()
	p.writeAnswer()
	let := make(chan struct{})
	x.reply = func(string, call.Command) (call.Result, error) { <-let; return call.Result{}, nil }
	a := o.do("POST", "/calls/"+p.ID+"/hold", nil, "Prefer: wait=5, respond-async").Want(202)
	want(t, a.Body, "status", "in_progress")
	close(let)
	o.calls.Close()
	if x.lastCommand() != (call.Hold{}) {
		t.Errorf("the switch was told %v", x.commands)
	}
	o.do("POST", "/calls/"+p.ID+"/hold", nil, "Prefer: respond-async").Want(503)
}

func TestDTMF_LongSequenceAsync(t *testing.T) {
	t.Parallel()
	o, x := newOrgWithSwitch(t, dbtest.SQLite(t))
	p := o.place()
	p.writeAnswer()
	x.reply = func(_ string, c call.Command) (call.Result, error) {
		return call.Result{Digits: len(c.(call.DTMF).Digits), Method: "rfc4733"}, nil
	}
	a := o.do("POST", "/calls/"+p.ID+"/dtmf", map[string]any{"digits": "12w#"}).Want(200)
	want(t, a.Body, "digits_sent", 4.0)
	want(t, a.Body, "method", "rfc4733")
	if x.lastCommand() != (call.DTMF{Digits: "12w#", Duration: 120 * time.Millisecond, Gap: 80 * time.Millisecond, Method: "auto"}) {
		t.Errorf("the switch was told %#v", x.lastCommand())
	}
	o.do("POST", "/calls/"+p.ID+"/dtmf", map[string]any{"digits": strings.Repeat("w", 20)}).Want(202)
	o.calls.Close()
}

func TestMonitor_WhisperNeedsCallsWrite(t *testing.T) {
	t.Parallel()
	o, x := newOrgWithSwitch(t, dbtest.SQLite(t))
	p := o.place()
	p.writeAnswer()
	x.reply = func(_ string, c call.Command) (call.Result, error) {
		m := call.MonitorState{ID: "mon_1", SupervisorID: "usr_1", Status: "ringing", StartedAt: o.at}
		switch c := c.(type) {
		case call.StartMonitor:
			m.Mode = c.Mode
		case call.UpdateMonitor:
			m.Mode, m.Status = c.Mode, "active"
		case call.EndMonitor:
			m.Mode, m.Status, m.EndedAt = "barge", "ended", o.at
		}
		p.next.Monitors = []call.MonitorState{m}
		p.writeChange()
		return call.Result{MonitorID: "mon_1"}, nil
	}
	ears := optest.Admin(o.org)
	ears.Scopes = []access.Scope{access.SupervisorWrite}
	at := "/calls/" + p.ID + "/monitor"
	o.api.Do(ears, "POST", at, nil).Refused("validation_failed", "user_id required")
	refused := o.api.Do(ears, "POST", at, map[string]any{"user_id": "usr_1", "mode": "whisper"}).Want(403).Refused("insufficient_scope")
	if fmt.Sprint(refused.At("required_scopes")) != "[calls:write]" || len(x.commands) != 0 {
		t.Errorf("refused with %s after %v", refused.Bytes, x.commands)
	}
	ears.UserID = "usr_1"
	m := o.api.Do(ears, "POST", at, nil).Want(201)
	want(t, m.Body, "mode", "listen")
	want(t, m.Body, "supervisor_id", "usr_1")
	o.api.Do(ears, "PATCH", at+"/mon_1", map[string]any{"mode": "barge"}).Want(403)
	m = o.do("PATCH", at+"/mon_1", map[string]any{"mode": "barge"}).Want(200)
	if fmt.Sprint(m.At("audible_to")) != "[agent caller]" {
		t.Errorf("audible to %v", m.At("audible_to"))
	}
	o.do("DELETE", at+"/mon_none", nil).Want(404)
	o.api.Do(ears, "DELETE", at+"/mon_1", nil).Want(204)
	o.api.Do(ears, "DELETE", at+"/mon_1", nil).Want(204)
	o.do("PATCH", at+"/mon_1", map[string]any{"mode": "listen"}).Want(409)
}

func TestParticipants_AddAndRemove(t *testing.T) {
	t.Parallel()
	o, x := newOrgWithSwitch(t, dbtest.SQLite(t))
	p := o.place()
	p.writeAnswer()
	x.reply = func(_ string, c call.Command) (call.Result, error) {
		if c, ok := c.(call.AddParticipant); ok {
			p.next.Legs = []call.LegState{{ID: "leg_3", Role: "agent", Number: c.To, Status: "ringing", SIPCallID: "sip-3", StartedAt: o.at}}
			p.writeChange()
			return call.Result{LegID: "leg_3"}, nil
		}
		return call.Result{}, nil
	}
	l := o.do("POST", "/calls/"+p.ID+"/participants", map[string]any{"to": "ext:101"}).Want(201)
	want(t, l.Body, "id", "leg_3")
	want(t, l.Body, "number", "ext:101")
	o.do("DELETE", "/calls/"+p.ID+"/participants/leg_none", nil).Want(404)
	o.do("DELETE", "/calls/"+p.ID+"/participants/leg_3", nil).Want(204)
	if x.lastCommand() != (call.RemoveParticipant{LegID: "leg_3"}) {
		t.Errorf("the switch was told %#v", x.lastCommand())
	}
}

func TestAsyncAction_RecordKeepsItsID(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o, x := newOrgWithSwitch(t, d)
		p := o.place()
		p.writeAnswer()
		at, let := "/calls/"+p.ID, make(chan struct{})
		var one sync.Mutex // the switch runs one command at a time
		x.reply = func(_ string, c call.Command) (call.Result, error) {
			<-let
			one.Lock()
			defer one.Unlock()
			switch c := c.(type) {
			case call.StartMonitor:
				p.next.Monitors = []call.MonitorState{{ID: c.ID, SupervisorID: c.UserID, Mode: c.Mode, Status: "active", StartedAt: o.at}}
				p.writeChange()
				return call.Result{MonitorID: c.ID}, nil
			case call.UpdateMonitor:
				return call.Result{}, op.Fail("action_timeout", "no")
			}
			return call.Result{}, op.Fail("carrier_error", "nobody is there")
		}
		later := "Prefer: respond-async"
		m := o.do("POST", at+"/monitor", map[string]any{"user_id": "usr_1"}, later).Want(202)
		want(t, m.Body, "status", "ringing")
		o.do("POST", at+"/monitor", map[string]any{"user_id": "usr_none"}, later).Want(422)
		again := o.do("POST", at+"/monitor", map[string]any{"user_id": "usr_1"}, later).Want(202)
		if again.Text("id") != m.Text("id") {
			t.Errorf("the same supervisor has two records: %s and %s", m.Bytes, again.Bytes)
		}
		l := o.do("POST", at+"/participants", map[string]any{"to": "ext:101"}, later).Want(202)
		want(t, l.Body, "status", "ringing")
		o.do("POST", at+"/participants", map[string]any{"to": ""}, later).Want(422)
		close(let)
		o.calls.Close()
		legs := o.do("GET", at+"?expand=legs", nil).Want(200)
		found := false
		for i := range len(legs.At("legs").([]any)) {
			leg := legs.At(fmt.Sprintf("legs.%d", i)).(map[string]any)
			if leg["id"] == l.Text("id") {
				found = leg["status"] == "failed" && leg["ended_at"] != nil
			}
		}
		if !found {
			t.Errorf("no failed leg %s in %s", l.Text("id"), legs.Bytes)
		}
		o.do("PATCH", at+"/monitor/"+m.Text("id"), map[string]any{"mode": "barge"}).Want(504)
		o.do("POST", at+"/monitor", map[string]any{"user_id": "usr_1"}, later).Want(503)
		o.do("PATCH", at+"/monitor/"+m.Text("id"), map[string]any{"mode": "barge"}, later).Want(503)
	})
}

func TestAsyncMonitor_UnansweredRecordEnds(t *testing.T) {
	t.Parallel()
	o, x := newOrgWithSwitch(t, dbtest.SQLite(t))
	p := o.place()
	p.writeAnswer()
	x.reply = func(string, call.Command) (call.Result, error) {
		return call.Result{}, op.Fail("carrier_error", "nobody")
	}
	m := o.do("POST", "/calls/"+p.ID+"/monitor", map[string]any{"user_id": "usr_1"}, "Prefer: respond-async").Want(202)
	o.calls.Close()
	o.do("PATCH", "/calls/"+p.ID+"/monitor/"+m.Text("id"), map[string]any{"mode": "listen"}).Want(409).Refused("invalid_state")
}
