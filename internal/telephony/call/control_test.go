package call_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op"
	"soniq/internal/platform/op/optest"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/call/calltest"
)

func TestCreate_StoredBeforeResponse(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o, x := newOrgWithSwitch(t, d)
		a := o.Do("POST", "/calls", map[string]any{"to": "+12025550143", "user_id": "usr_1", "reason": "asked to be called", "record": "on",
			"metadata": map[string]string{"order": "7"}, "headers": map[string]string{"X-Campaign": "spring"}, "client_reference": "r1"}).Want(201)
		calltest.Want(t, a.Body, "status", "queued")
		calltest.Want(t, a.Body, "client_reference", "r1")
		calltest.Want(t, a.Body, "notes_count", 1.0)
		p := x.Placements[0]
		if p.To != "+12025550143" || p.UserID != "usr_1" || p.RingTimeout != 30*time.Second || p.MaxDuration != 4*time.Hour || p.Record != "on" ||
			p.Headers["X-Campaign"] != "spring" || p.Machine != "off" {
			t.Errorf("placed %+v", p)
		}
		if got := a.Header.Get("Location"); got != "/api/v1/calls/"+a.Text("id") {
			t.Errorf("location %s", got)
		}
		notes := o.Do("GET", "/calls/"+a.Text("id")+"?expand=notes", nil).Want(200)
		if notes.At("notes.0.body") != "asked to be called" || notes.At("notes.0.author.type") != "api_key" {
			t.Errorf("notes %s", notes.Bytes)
		}
	})
}

func TestCreate_AllViolationsReported(t *testing.T) {
	t.Parallel()
	o, x := newOrgWithSwitch(t, dbtest.SQLite(t))
	long := strings.Repeat("x", 501)
	o.Do("POST", "/calls", map[string]any{"to": "nobody", "from": "+12025550000", "ring_timeout_seconds": 4, "max_duration_seconds": 0,
		"record": "maybe", "machine_detection": "yes", "reason": long, "client_reference": long, "announce_text": strings.Repeat(long, 2),
		"headers":  map[string]string{"Via": "x", "X-Ok": "a\r\nb"},
		"metadata": map[string]string{"k": long}}).Refused("validation_failed", "to invalid_e164", "from number_not_owned", "user_id required",
		"ring_timeout_seconds out_of_range", "max_duration_seconds out_of_range", "record invalid_value", "machine_detection invalid_value",
		"reason too_long", "client_reference too_long", "announce_text too_long", "headers.Via not_allowed", "headers.X-Ok invalid_value",
		"metadata.k too_long")
	o.Do("POST", "/calls", map[string]any{"to": "+12025550143", "user_id": "usr_none", "device_id": "dev_none"}).
		Refused("validation_failed", "user_id not_found", "device_id not_found")
	o.Do("POST", "/calls", map[string]any{"to": "911", "user_id": "usr_1"}).Want(422).Refused("destination_not_allowed")
	o.Do("POST", "/calls", map[string]any{"to": "+12025550143", "user_id": "usr_1", "from": "+12025550000"}).Want(422).Refused("number_not_owned")
	o.Do("POST", "/calls", map[string]any{"to": "+12025550143", "flow_id": "flw_1", "user_id": "usr_1"}).Refused("validation_failed", "flow_id conflict", "flow_id not_found")
	o.Do("POST", "/calls", map[string]any{"to": "+12025550143", "nonsense": 1}).Want(400).Refused("unknown_field")
	if len(x.Placements) != 0 {
		t.Errorf("placed %d calls", len(x.Placements))
	}
}

func TestCreate_RateLimits(t *testing.T) {
	t.Parallel()
	o, x := newOrgWithSwitch(t, dbtest.SQLite(t))
	now := time.Now()
	o.Clock = clock.Func(func() time.Time { return now })
	place := func(to string) *optest.Answer {
		return o.Do("POST", "/calls", map[string]any{"to": to, "user_id": "usr_1"})
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
	if len(x.Placements) != 6 {
		t.Errorf("placed %d calls, want 6", len(x.Placements))
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
		a := o.Do("POST", "/calls/"+p.ID+"/"+c.path, c.body).Want(200)
		calltest.Want(t, a.Body, "id", p.ID)
		if len(a.Body["legs"].([]any)) != 2 {
			t.Errorf("%s answers without legs", c.path)
		}
		if got := x.LastCommand(); got != c.want {
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
	o.Do("POST", "/calls/call_none/hold", nil).Want(404)
	o.API.Do(optest.Admin(db.NewID("org")), "POST", at+"/end", nil).Want(404)
	o.Do("POST", at+"/hold", map[string]any{"audio_id": "aud_none"}).Refused("validation_failed", "audio_id not_found")
	o.Do("POST", at+"/announce", map[string]any{}).Refused("validation_failed", "audio_id required")
	o.Do("POST", at+"/transfer", map[string]any{"to": "queue:que_1"}).Want(422).Refused("validation_failed", "to not_found")
	o.Do("POST", at+"/transfer", map[string]any{"to": "100", "mode": "cold", "timeout_seconds": 1, "on_fail": "cry"}).
		Refused("validation_failed", "to invalid_e164", "mode invalid_value", "timeout_seconds out_of_range", "on_fail invalid_value")
	o.Do("POST", at+"/dtmf", map[string]any{"digits": "12x"}).Want(422)
	if len(x.Commands) != 0 {
		t.Errorf("the switch was told %v", x.Commands)
	}
	x.Reply = func(string, call.Command) (call.Result, error) { return call.Result{}, context.DeadlineExceeded }
	o.Do("POST", at+"/hold", nil).Want(504).Refused("action_timeout")
	x.Reply = func(string, call.Command) (call.Result, error) { return call.Result{}, op.NotFound("call in progress") }
	o.Do("POST", at+"/hold", nil).Want(409).Refused("invalid_state")
	x.Reply = func(string, call.Command) (call.Result, error) {
		return call.Result{}, op.State("it rings", "ringing", "end")
	}
	o.Do("POST", at+"/hold", nil).Want(409).Refused("invalid_state")
	o.Calls.Switch = nil
	o.Do("POST", at+"/hold", nil).Want(503).Refused("draining")
	o.Must(o.Calls.End(context.Background(), call.Ended{New: p.New, At: o.At.Add(time.Minute), Outcome: call.Outcome{Reason: "api"}}))
	again := o.Do("POST", at+"/end", nil).Want(200) // idempotent: the call has ended already
	calltest.Want(t, again.Body, "status", "canceled")
	calltest.Want(t, again.Body, "end_reason", "api")
	o.Do("POST", at+"/end", nil, "Prefer: respond-async").Want(200)
	for _, action := range []string{"/unhold", "/mute", "/transfer/complete", "/transfer/cancel"} {
		o.Do("POST", at+action, nil).Want(409).Refused("invalid_state")
	}
	ended := o.Do("POST", at+"/hold", nil).Want(409).Refused("invalid_state")
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
	x.Reply = func(string, call.Command) (call.Result, error) { <-let; return call.Result{}, nil }
	a := o.Do("POST", "/calls/"+p.ID+"/hold", nil, "Prefer: wait=5, respond-async").Want(202)
	calltest.Want(t, a.Body, "status", "in_progress")
	close(let)
	o.Calls.Close()
	if x.LastCommand() != (call.Hold{}) {
		t.Errorf("the switch was told %v", x.Commands)
	}
	o.Do("POST", "/calls/"+p.ID+"/hold", nil, "Prefer: respond-async").Want(503)
}

func TestDTMF_LongSequenceAsync(t *testing.T) {
	t.Parallel()
	o, x := newOrgWithSwitch(t, dbtest.SQLite(t))
	p := o.place()
	p.writeAnswer()
	x.Reply = func(_ string, c call.Command) (call.Result, error) {
		return call.Result{Digits: len(c.(call.DTMF).Digits), Method: "rfc4733"}, nil
	}
	a := o.Do("POST", "/calls/"+p.ID+"/dtmf", map[string]any{"digits": "12w#"}).Want(200)
	calltest.Want(t, a.Body, "digits_sent", 4.0)
	calltest.Want(t, a.Body, "method", "rfc4733")
	if x.LastCommand() != (call.DTMF{Digits: "12w#", Duration: 120 * time.Millisecond, Gap: 80 * time.Millisecond, Method: "auto"}) {
		t.Errorf("the switch was told %#v", x.LastCommand())
	}
	o.Do("POST", "/calls/"+p.ID+"/dtmf", map[string]any{"digits": strings.Repeat("w", 20)}).Want(202)
	o.Calls.Close()
}

func TestMonitor_WhisperNeedsCallsWrite(t *testing.T) {
	t.Parallel()
	o, x := newOrgWithSwitch(t, dbtest.SQLite(t))
	p := o.place()
	p.writeAnswer()
	x.Reply = func(_ string, c call.Command) (call.Result, error) {
		m := call.MonitorState{ID: "mon_1", SupervisorID: "usr_1", Status: "ringing", StartedAt: o.At}
		switch c := c.(type) {
		case call.StartMonitor:
			m.Mode = c.Mode
		case call.UpdateMonitor:
			m.Mode, m.Status = c.Mode, "active"
		case call.EndMonitor:
			m.Mode, m.Status, m.EndedAt = "barge", "ended", o.At
		}
		p.next.Monitors = []call.MonitorState{m}
		p.writeChange()
		return call.Result{MonitorID: "mon_1"}, nil
	}
	ears := optest.Admin(o.ID)
	ears.Scopes = []access.Scope{access.SupervisorWrite}
	at := "/calls/" + p.ID + "/monitor"
	o.API.Do(ears, "POST", at, nil).Refused("validation_failed", "user_id required")
	refused := o.API.Do(ears, "POST", at, map[string]any{"user_id": "usr_1", "mode": "whisper"}).Want(403).Refused("insufficient_scope")
	if fmt.Sprint(refused.At("required_scopes")) != "[calls:write]" || len(x.Commands) != 0 {
		t.Errorf("refused with %s after %v", refused.Bytes, x.Commands)
	}
	ears.UserID = "usr_1"
	m := o.API.Do(ears, "POST", at, nil).Want(201)
	calltest.Want(t, m.Body, "mode", "listen")
	calltest.Want(t, m.Body, "supervisor_id", "usr_1")
	o.API.Do(ears, "PATCH", at+"/mon_1", map[string]any{"mode": "barge"}).Want(403)
	m = o.Do("PATCH", at+"/mon_1", map[string]any{"mode": "barge"}).Want(200)
	if fmt.Sprint(m.At("audible_to")) != "[agent caller]" {
		t.Errorf("audible to %v", m.At("audible_to"))
	}
	o.Do("DELETE", at+"/mon_none", nil).Want(404)
	o.API.Do(ears, "DELETE", at+"/mon_1", nil).Want(204)
	o.API.Do(ears, "DELETE", at+"/mon_1", nil).Want(204)
	o.Do("PATCH", at+"/mon_1", map[string]any{"mode": "listen"}).Want(409)
}

func TestParticipants_AddAndRemove(t *testing.T) {
	t.Parallel()
	o, x := newOrgWithSwitch(t, dbtest.SQLite(t))
	p := o.place()
	p.writeAnswer()
	x.Reply = func(_ string, c call.Command) (call.Result, error) {
		if c, ok := c.(call.AddParticipant); ok {
			p.next.Legs = []call.LegState{{ID: "leg_3", Role: "agent", Number: c.To, Status: "ringing", SIPCallID: "sip-3", StartedAt: o.At}}
			p.writeChange()
			return call.Result{LegID: "leg_3"}, nil
		}
		return call.Result{}, nil
	}
	l := o.Do("POST", "/calls/"+p.ID+"/participants", map[string]any{"to": "ext:101"}).Want(201)
	calltest.Want(t, l.Body, "id", "leg_3")
	calltest.Want(t, l.Body, "number", "ext:101")
	o.Do("DELETE", "/calls/"+p.ID+"/participants/leg_none", nil).Want(404)
	o.Do("DELETE", "/calls/"+p.ID+"/participants/leg_3", nil).Want(204)
	if x.LastCommand() != (call.RemoveParticipant{LegID: "leg_3"}) {
		t.Errorf("the switch was told %#v", x.LastCommand())
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
		x.Reply = func(_ string, c call.Command) (call.Result, error) {
			<-let
			one.Lock()
			defer one.Unlock()
			switch c := c.(type) {
			case call.StartMonitor:
				p.next.Monitors = []call.MonitorState{{ID: c.ID, SupervisorID: c.UserID, Mode: c.Mode, Status: "active", StartedAt: o.At}}
				p.writeChange()
				return call.Result{MonitorID: c.ID}, nil
			case call.UpdateMonitor:
				return call.Result{}, op.Fail("action_timeout", "no")
			}
			return call.Result{}, op.Fail("carrier_error", "nobody is there")
		}
		later := "Prefer: respond-async"
		m := o.Do("POST", at+"/monitor", map[string]any{"user_id": "usr_1"}, later).Want(202)
		calltest.Want(t, m.Body, "status", "ringing")
		o.Do("POST", at+"/monitor", map[string]any{"user_id": "usr_none"}, later).Want(422)
		again := o.Do("POST", at+"/monitor", map[string]any{"user_id": "usr_1"}, later).Want(202)
		if again.Text("id") != m.Text("id") {
			t.Errorf("the same supervisor has two records: %s and %s", m.Bytes, again.Bytes)
		}
		l := o.Do("POST", at+"/participants", map[string]any{"to": "ext:101"}, later).Want(202)
		calltest.Want(t, l.Body, "status", "ringing")
		o.Do("POST", at+"/participants", map[string]any{"to": ""}, later).Want(422)
		close(let)
		o.Calls.Close()
		legs := o.Do("GET", at+"?expand=legs", nil).Want(200)
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
		o.Do("PATCH", at+"/monitor/"+m.Text("id"), map[string]any{"mode": "barge"}).Want(504)
		o.Do("POST", at+"/monitor", map[string]any{"user_id": "usr_1"}, later).Want(503)
		o.Do("PATCH", at+"/monitor/"+m.Text("id"), map[string]any{"mode": "barge"}, later).Want(503)
	})
}

func TestAsyncMonitor_UnansweredRecordEnds(t *testing.T) {
	t.Parallel()
	o, x := newOrgWithSwitch(t, dbtest.SQLite(t))
	p := o.place()
	p.writeAnswer()
	x.Reply = func(string, call.Command) (call.Result, error) {
		return call.Result{}, op.Fail("carrier_error", "nobody")
	}
	m := o.Do("POST", "/calls/"+p.ID+"/monitor", map[string]any{"user_id": "usr_1"}, "Prefer: respond-async").Want(202)
	o.Calls.Close()
	o.Do("PATCH", "/calls/"+p.ID+"/monitor/"+m.Text("id"), map[string]any{"mode": "listen"}).Want(409).Refused("invalid_state")
}
