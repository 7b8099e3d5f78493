package flow

import (
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestFallback_LoopAndBrokenFlow(t *testing.T) {
	t.Parallel()
	o := &fixture.Office{Org: fixture.NewOrg(rig.Shared(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off",
		"SONIQ_VOICE": "off"}}))}
	o.Bob = o.AddUser("Bob")
	o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
	hello := o.UploadTone(fixture.GreetingTone, time.Second)
	// This flow continues to itself, up to the limit for a caller.
	loop := o.AddFlow(fixture.Node("hello", "tag", map[string]any{"tags": []string{"x"}}, "done", "menu"),
		fixture.Node("menu", "menu", map[string]any{"prompt": hello, "digits": map[string]any{"1": "x"}, "timeout_seconds": 1, "retries": 0},
			"1", "bye", "timeout", "bye", "invalid", "bye"), fixture.Node("bye", "hangup", nil))
	again := []map[string]any{fixture.Node("again", "transfer", map[string]any{"to": "flow:" + loop}, "failed", "bye"), fixture.Node("bye", "hangup", nil)}
	o.Want(200, "PATCH", "/flows/"+loop, map[string]any{"nodes": again, "entry": "again"}, nil)
	o.Want(200, "POST", "/flows/"+loop+"/publish", map[string]any{}, nil)
	way := o.AddFlowCarrier(loop)
	if v, err := o.TryCallIn(way, "+12125550101"); err == nil {
		v.WaitEnd()
	}
	r := o.CDR("+12125550101")
	got := ""
	rig.Until(t, "every step of the call", 0, func() bool {
		got, _, _ = o.FlowPath(r.CallID)
		return strings.Count(got, "again") >= 100
	})
	if r.String() != "inbound missed flow_ended system 480" || !strings.HasPrefix(got, "again:failed bye again:gone") ||
		strings.Count(got, "again") != 100 {
		t.Errorf("record of a call that went round: %s; way %s", r, got)
	}
	// A caller of an unreachable number is routed to the fallback of the number.
	unpublished := struct{ ID string }{}
	o.Want(201, "POST", "/flows", map[string]any{"name": "Other", "publish": true, "ivr": map[string]any{"greeting": hello,
		"options": map[string]any{"1": "ext:" + o.Bob.Extension}, "timeout_to": "hangup"}}, &unpublished)
	number := "/numbers/" + o.NumberID(way)
	o.Want(200, "PATCH", number, map[string]any{"user_id": o.AddUser("Nobody").ID, "fallback": "flow:" + unpublished.ID}, nil)
	v := o.CallIn(way, "+12125550102")
	v.WaitTone(0, fixture.GreetingTone)
	v.Press("1")
	v.WaitTone(0, fixture.BobTone)
	v.Line.HangUp()
	if r := o.CDR("+12125550102"); r.Agent == nil || r.Agent.ID != o.Bob.ID {
		t.Errorf("record of who went to the fallback: %s", r)
	}
	// If the fallback cannot be reached either, the caller hears an announcement.
	o.Want(200, "PATCH", number, map[string]any{"fallback": "+442079460018"}, nil)
	v = o.CallIn(way, "+12125550103")
	v.WaitTone(0, 1400)
	v.WaitEnd()
	if r := o.CDR("+12125550103"); r.String() != "inbound missed no_route system 0" {
		t.Errorf("record of who reached nobody: %s", r)
	}
}

func TestMenu_MissingPrompt(t *testing.T) {
	t.Parallel()
	o := &fixture.Office{Org: fixture.NewOrg(rig.Shared(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off",
		"SONIQ_VOICE": "off"}}))}
	o.Bob = o.AddUser("Bob")
	o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
	way := o.AddFlowCarrier(o.PublishFlow(map[string]any{"ivr": map[string]any{"greeting": "Press 1 for Bob.", "options": map[string]any{"1": "ext:" + o.Bob.Extension},
		"timeout_to": "hangup"}}))
	v := o.CallIn(way, "+12125550101")
	v.Press("1")
	v.WaitTone(0, fixture.BobTone)
	v.Line.HangUp()
	got, steps, _ := o.FlowPath(o.CDR("+12125550101").CallID, "menu:1 to_2:answered")
	if got != "menu:1 to_2:answered" || !strings.Contains(steps[0].Problem, "the prompt was not heard") {
		t.Errorf("way of the caller: %s %+v", got, steps)
	}
}
