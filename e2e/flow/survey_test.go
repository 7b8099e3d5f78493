package flow

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// Steps after answered run for the caller when the person has hung up: of a queue, a hunt group and a transfer.
func TestFlow_GoesOnAfterAnswer(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		o := &fixture.Office{Org: fixture.NewOrg(s)}
		o.Ada = o.AddUser("Ada")
		o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{Auto: true})
		queue := o.AddQueue(map[string]any{"wrap_up_seconds": 0}, o.Ada)
		survey := o.UploadTone(fixture.GreetingTone, 2*time.Second)
		nodes := func(person map[string]any) []map[string]any {
			return []map[string]any{person, fixture.Node("survey", "menu", map[string]any{"prompt": survey, "digits": map[string]any{"5": "good"},
				"timeout_seconds": 20}, "5", "thanks", "timeout", "bye", "invalid", "bye"),
				fixture.Node("thanks", "tag", map[string]any{"tags": []string{"good"}}, "done", "bye"), fixture.Node("bye", "hangup", nil)}
		}
		for from, person := range map[string]map[string]any{
			"+12125550101": fixture.Node("ada", "queue", map[string]any{"queue_id": queue}, "answered", "survey", "timeout", "bye", "overflow", "bye"),
			"+12125550102": fixture.Node("ada", "hunt_group", map[string]any{"members": []map[string]any{{"user_id": o.Ada.ID}}}, "answered", "survey", "no_answer", "bye"),
			"+12125550103": fixture.Node("ada", "transfer", map[string]any{"to": "ext:" + o.Ada.Extension}, "answered", "survey", "failed", "bye"),
		} {
			way := o.AddFlowCarrier(o.AddFlow(nodes(person)...))
			v := o.CallIn(way, from)
			at := v.WaitTone(0, fixture.AdaTone)
			o.AdaPhone.Do("hangup", "")
			v.WaitTone(at, fixture.GreetingTone)
			v.Press("5")
			v.WaitEnd()
			r := o.CDR(from)
			if r.String() != "inbound completed flow_ended system 0" || r.Agent == nil || r.Agent.ID != o.Ada.ID {
				t.Errorf("%s: record %s, agent %+v", from, r, r.Agent)
			}
			const path = "ada:answered survey:5 thanks:done bye"
			if got, _, _ := o.FlowPath(r.CallID, path); got != path {
				t.Errorf("%s: way %q, want %q", from, got, path)
			}
		}
		// Nothing follows for a caller who hangs up first.
		way := o.AddFlowCarrier(o.AddFlow(nodes(fixture.Node("ada", "transfer", map[string]any{"to": "ext:" + o.Ada.Extension}, "answered", "survey", "failed", "bye"))...))
		v := o.CallIn(way, "+12125550104")
		v.WaitTone(0, fixture.AdaTone)
		v.Line.HangUp()
		r := o.CDR("+12125550104")
		const path = "ada:answered survey:gone"
		if got, _, _ := o.FlowPath(r.CallID, path); got != path || r.EndReason != "caller_hangup" {
			t.Errorf("who hung up first: %s, way %q", r, got)
		}
	})
}
