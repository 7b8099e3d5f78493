package sandbox

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// A number bought in the sandbox rings, with and without a trunk, and the answer names the call. Own trial.
func TestBoughtNumber_Rings(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	test := s.Key(fixture.NewOrg(s).Org, "test", "all")
	o := &fixture.Org{Client: test, Webhook: test.Hook(nil)}
	user := o.AddUser("Bought")
	addAnsweringPhone(o, user)
	var number struct{ ID, Number, Status string }
	o.Want(201, "POST", "/numbers", map[string]any{"number": "+12025550121", "user_id": user.ID}, &number)
	wantCall := func(from string) {
		t.Helper()
		var calling struct {
			Call string `json:"call_id"`
			From string `json:"from_number"`
			To   string `json:"to_number"`
		}
		o.Want(202, "POST", "/sandbox/calls/inbound", map[string]any{"from": from, "to": number.Number,
			"script": []map[string]any{{"wait": 0.5}, {"hangup": true}}}, &calling)
		if calling.From != from || calling.To != number.Number {
			t.Errorf("the answer has from %q, to %q", calling.From, calling.To)
		}
		o.Want(200, "GET", "/calls/"+calling.Call, nil, nil)
		r := o.CDR(from)
		if r.String() != "inbound completed caller_hangup caller 0" || r.CallID != calling.Call || r.To != number.Number {
			t.Errorf("record of call %s: %s, the answer has the call %s", r.CallID, r, calling.Call)
		}
	}
	wantCall("+12125550141")
	way := o.AddCarrier("", nil)
	o.Want(200, "PATCH", "/numbers/"+number.ID, map[string]any{"trunk_id": way.Trunk}, nil)
	wantCall("+12125550142")
	var route struct {
		ID string `json:"number_id"`
	}
	o.Want(200, "POST", "/trunks/route-test", map[string]any{"direction": "inbound", "to": number.Number, "source_address": "192.0.2.1"}, &route)
	if route.ID != number.ID {
		t.Errorf("the simulated route leads to the number %q, want %s", route.ID, number.ID)
	}
}

// Calls without a user show a number: the organisation's, else that they are anonymous. Own trial.
func TestFlowCall_FromNumber(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	test := s.Key(fixture.NewOrg(s).Org, "test", "all")
	o := &fixture.Org{Client: test, Webhook: test.Hook(nil)}
	greeting := o.UploadTone(fixture.GreetingTone, 2*time.Second)
	flow := o.PublishFlow(map[string]any{"ivr": map[string]any{"greeting": greeting, "timeout_to": "hangup",
		"options": map[string]any{"3": "hangup"}}})
	wantFrom := func(to, want string) {
		t.Helper()
		var placed struct {
			ID   string
			From string `json:"from_number"`
		}
		o.Want(201, "POST", "/calls", map[string]any{"to": to, "flow_id": flow}, &placed)
		if placed.From != want {
			t.Errorf("a call of a flow to %s is from %q, want %q", to, placed.From, want)
		}
	}
	user := o.AddUser("Inside")
	addAnsweringPhone(o, user)
	wantFrom("+12025550102", "anonymous")
	o.Want(201, "POST", "/numbers", map[string]any{"number": "+12025550121"}, nil)
	wantFrom("+12025550104", "+12025550121")
	wantFrom("ext:"+user.Extension, "+12025550121")
}
