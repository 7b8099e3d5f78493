package sandbox

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestFlow_InboundCaller(t *testing.T) {
	t.Parallel()
	server := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	live := fixture.NewOrg(server)
	test := server.Key(live.Org, "test", "all")
	o := &fixture.Office{Org: &fixture.Org{Client: test, Webhook: test.Hook(nil)}}
	o.Bob = o.AddUser("Bob")
	o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
	greeting := o.UploadTone(fixture.GreetingTone, 2*time.Second)
	way := o.AddFlowCarrier(o.PublishFlow(map[string]any{"ivr": map[string]any{"greeting": greeting, "options": map[string]any{"3": "ext:" + o.Bob.Extension},
		"timeout_to": "hangup"}}))
	o.Want(202, "POST", "/sandbox/calls/inbound", map[string]any{"from": "+12125550101", "to": way.Number,
		"script": []map[string]any{{"wait": 0.5}, {"dtmf": "3"}, {"wait": 3}, {"hangup": true}}}, nil)
	o.BobPhone.Wait("CALL_ESTABLISHED", "")
	r := o.CDR("+12125550101")
	if r.String() != "inbound completed caller_hangup caller 0" || r.Agent == nil || r.Agent.ID != o.Bob.ID {
		t.Errorf("record: %s", r)
	}
	if got, _, _ := o.FlowPath(r.CallID, "menu:3 to_2:answered"); got != "menu:3 to_2:answered" {
		t.Errorf("way of the caller: %s", got)
	}
}
