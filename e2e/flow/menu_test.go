package flow

import (
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestMenu_KeyConnectsCaller(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		o := &fixture.Office{Org: fixture.NewOrg(s)}
		o.Bob, o.Carol = o.AddUser("Bob"), o.AddUser("Carol")
		o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
		o.CarolPhone = o.Phone(o.Carol, fixture.CarolTone, rig.PhoneOptions{Auto: true})
		greeting := o.UploadTone(fixture.GreetingTone, 3*time.Second)
		f := o.AddFlow(
			fixture.Node("menu", "menu", map[string]any{"prompt": map[string]any{"audio_id": greeting}, "digits": map[string]any{"1": "Bob", "2": "Carol"},
				"timeout_seconds": 3, "retries": 1}, "1", "bob", "2", "tag", "timeout", "bye", "invalid", "bye"),
			fixture.Node("bob", "transfer", map[string]any{"to": "ext:" + o.Bob.Extension}, "failed", "bye"),
			fixture.Node("tag", "tag", map[string]any{"tags": []string{"sales"}}, "done", "carol"),
			fixture.Node("carol", "transfer", map[string]any{"to": "user:" + o.Carol.ID}, "failed", "bye"),
			fixture.Node("bye", "hangup", nil))
		way := o.AddFlowCarrier(f)

		v := o.CallIn(way, "+12125550171")
		v.WaitTone(0, fixture.GreetingTone)
		if live := o.LiveCall(nil); live["stage"] != "ivr" || live["status"] != "ringing" || live["flow_id"] != f || live["answered_at"] != nil {
			t.Errorf("the call in the menu: %v", live)
		}
		v.Press("9")
		at := v.WaitTone(v.Mark()+800, fixture.GreetingTone) // once more, from its start
		v.Press("2")
		o.CarolPhone.Wait("CALL_ESTABLISHED", "")
		v.WaitTone(at, fixture.CarolTone)
		if d := fixture.ToneDuration(o.CarolPhone.Since(o.CarolPhone.Mark(), 2*time.Second), fixture.CallerTone); d < time.Second {
			t.Errorf("Carol heard the caller for %s of 2 s", d)
		}
		if live := o.LiveCall(nil); live["status"] != "in_progress" || live["agent_id"] != o.Carol.ID {
			t.Errorf("the call that was connected: %v", live)
		}
		v.Line.HangUp()
		r := o.CDR("+12125550171")
		if r.String() != "inbound completed caller_hangup caller 0" || r.FlowID == nil || *r.FlowID != f || r.FlowVersion == nil ||
			*r.FlowVersion != 1 {
			t.Errorf("record: %s, flow %v version %v", r, r.FlowID, r.FlowVersion)
		}
		if len(r.Tags) != 1 || r.Tags[0] != "sales" || r.Agent == nil || r.Agent.ID != o.Carol.ID || r.Talk < 2 {
			t.Errorf("record: tags %v, agent %+v, %d s of talk", r.Tags, r.Agent, r.Talk)
		}
		if way, steps, _ := o.FlowPath(r.CallID, "menu:2 tag:done carol:answered"); way != "menu:2 tag:done carol:answered" || steps[0].Type != "menu" {
			t.Errorf("way of the caller: %s", way)
		}
	})
}

func TestMenu_TimeoutAndInvalid(t *testing.T) {
	t.Parallel()
	s := fixture.NewOrg(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	greeting, sorry := s.UploadTone(fixture.GreetingTone, time.Second), s.UploadTone(fixture.AgainTone, time.Second)
	f := s.AddFlow(
		fixture.Node("menu", "menu", map[string]any{"prompt": greeting, "digits": map[string]any{"1": "x"}, "timeout_seconds": 1, "retries": 1},
			"1", "bye", "timeout", "sorry", "invalid", "bye"),
		fixture.Node("sorry", "play", map[string]any{"audio_id": sorry}, "done", "bye"),
		fixture.Node("bye", "hangup", nil))
	way := s.AddFlowCarrier(f)
	for from, c := range map[string]struct{ keys, way, record string }{
		"+12125550101": {"", "menu:timeout sorry:done bye", "inbound completed flow_ended system 0"},
		"+12125550102": {"45", "menu:invalid bye", "inbound completed flow_ended system 0"},
		"+12125550103": {"1", "menu:1 bye", "inbound completed flow_ended system 0"},
	} {
		v := s.CallIn(way, from)
		at := v.WaitTone(0, fixture.GreetingTone)
		for _, k := range strings.Split(c.keys, "") {
			v.Press(k)
			if k == "4" {
				at = v.WaitTone(v.Mark()+800, fixture.GreetingTone)
			}
		}
		if c.keys == "" {
			v.WaitTone(at, fixture.AgainTone)
		}
		v.WaitEnd()
		r := s.CDR(from)
		if r.String() != c.record || r.MissedReason != nil { // the flow served the caller to its end
			t.Errorf("%s: record %s, missed %v", from, r, r.MissedReason)
		}
		s.WantEvents(r.CallID, "call.started", "call.ended")
		if got, _, _ := s.FlowPath(r.CallID, c.way); got != c.way {
			t.Errorf("%s: way %q, want %q", from, got, c.way)
		}
	}
	v := s.CallIn(way, "+12125550104")
	v.WaitTone(0, fixture.GreetingTone)
	v.Line.HangUp()
	r := s.CDR("+12125550104")
	if r.String() != "inbound missed caller_hangup caller 0" || r.MissedReason == nil || *r.MissedReason != "abandoned_in_menu" {
		t.Errorf("who hung up in the menu: %s, missed %v", r, r.MissedReason)
	}
	s.WantEvents(r.CallID, "call.started", "call.missed", "call.ended")
	if got, _, _ := s.FlowPath(r.CallID, "menu:gone"); got != "menu:gone" {
		t.Errorf("way of who hung up in the menu: %s", got)
	}
}
