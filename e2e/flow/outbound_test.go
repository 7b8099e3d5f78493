package flow

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// A party that is called by API request is routed into a flow or a queue when it answers.
func TestFlow_CalledParty(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		o := &fixture.Office{Org: fixture.NewOrg(s)}
		o.Ada, o.Bob = o.AddUser("Ada"), o.AddUser("Bob")
		o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{Auto: true})
		o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
		flow := o.AddFlow(fixture.Node("say", "play", map[string]any{"audio_id": o.UploadTone(fixture.GreetingTone, 6*time.Second)}, "done", "bye"), fixture.Node("bye", "hangup", nil))
		queue := o.AddQueue(map[string]any{"wrap_up_seconds": 0}, o.Ada)

		heard := o.BobPhone.Mark()
		var c struct{ ID string }
		o.Want(201, "POST", "/calls", map[string]any{"to": "ext:" + o.Bob.Extension, "flow_id": flow}, &c)
		o.BobPhone.Wait("CALL_ESTABLISHED", "")
		fixture.Hears(t, "who was called", o.BobPhone.Since(heard, 5*time.Second), fixture.GreetingTone, 2*time.Second)
		o.BobPhone.Wait("CALL_CLOSED", "")
		if r := o.CDRs(1, "")[0]; r.CallID != c.ID || r.FlowID == nil || *r.FlowID != flow || r.Status != "completed" {
			t.Errorf("record: %s, flow %v", r, r.FlowID)
		}

		o.Want(201, "POST", "/callbacks", map[string]any{"to": "ext:" + o.Bob.Extension, "queue_id": queue}, nil)
		o.AdaPhone.Wait("CALL_ESTABLISHED", "")
		o.HearsOnly("Ada", o.AdaPhone, fixture.BobTone)
		o.HearsOnly("Bob", o.BobPhone, fixture.AdaTone)
		o.AdaPhone.Do("hangup", "")
		o.WaitQueueEntry(queue, "completed")
	})
}

func TestFlow_PlacedAndTransferredCalls(t *testing.T) {
	t.Parallel()
	o := &fixture.Office{Org: fixture.NewOrg(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))}
	o.Ada, o.Bob, o.Carol = o.AddUser("Ada"), o.AddUser("Bob"), o.AddUser("Carol")
	o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
	o.CarolPhone = o.Phone(o.Carol, fixture.CarolTone, rig.PhoneOptions{Auto: true})
	greeting := o.UploadTone(fixture.GreetingTone, 3*time.Second)
	f := o.AddFlow(
		fixture.Node("menu", "menu", map[string]any{"prompt": greeting, "digits": map[string]any{"1": "x"}}, "1", "ai", "timeout", "bye", "invalid", "bye"),
		fixture.Node("ai", "ai_agent", map[string]any{"instructions": "Help.", "handoff": "user:" + o.Carol.ID}, "failed", "bye"),
		fixture.Node("bye", "hangup", nil))
	o.Want(201, "POST", "/calls", map[string]any{"to": "ext:" + o.Bob.Extension, "flow_id": f}, nil)
	o.BobPhone.Wait("CALL_ESTABLISHED", "")
	if d := fixture.ToneDuration(o.BobPhone.Since(0, time.Second), fixture.GreetingTone); d < 500*time.Millisecond {
		t.Errorf("Bob heard the greeting for %s of a second", d)
	}
	o.BobPhone.Do("sndcode", "1")
	o.CarolPhone.Wait("CALL_ESTABLISHED", "")
	o.HearsOnly("Bob", o.BobPhone, fixture.CarolTone)
	o.HearsOnly("Carol", o.CarolPhone, fixture.BobTone)
	o.BobPhone.Do("hangup", "")
	r := o.CDRs(1, "")[0]
	if got, _, _ := o.FlowPath(r.CallID, "menu:1 ai:answered"); got != "menu:1 ai:answered" {
		t.Errorf("way of who was called: %s", got)
	}
	o.CarolPhone.Wait("CALL_CLOSED", "")

	way := o.AddCarrier(o.Bob.ID, nil)
	v := o.CallIn(way, "+12125550101")
	at := v.WaitTone(0, fixture.BobTone)
	id := o.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })["id"].(string)
	o.Want(200, "POST", "/calls/"+id+"/transfer", map[string]any{"to": "flow:" + f}, nil)
	at = v.WaitTone(at, fixture.GreetingTone)
	v.Press("1")
	v.WaitTone(at, fixture.CarolTone)
	v.Line.HangUp()
	if r := o.CDR("+12125550101"); r.Agent == nil || r.Agent.ID != o.Carol.ID || r.Status != "completed" {
		t.Errorf("record of who was sent into the flow: %s, agent %+v", r, r.Agent)
	}
}
