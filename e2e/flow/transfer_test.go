package flow

import (
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestHuntGroup_Strategies(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		o := &fixture.Office{Org: fixture.NewOrg(s)}
		o.Ada, o.Bob, o.Carol = o.AddUser("Ada"), o.AddUser("Bob"), o.AddUser("Carol")
		o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{})
		o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{})
		members := []map[string]any{{"user_id": o.Ada.ID}, {"user_id": o.Bob.ID}}
		bye := fixture.Node("bye", "hangup", map[string]any{"reason": "busy"})
		group := func(strategy string, members []map[string]any) fixture.Carrier {
			return o.AddFlowCarrier(o.AddFlow(fixture.Node("group", "hunt_group", map[string]any{"members": members, "strategy": strategy, "ring_timeout_seconds": 5},
				"no_answer", "bye", "busy", "bye", "answered", "tag"), fixture.Node("tag", "tag", map[string]any{"tags": []string{"taken"}}, "done", "play"),
				fixture.Node("play", "play", map[string]any{"text": "Goodbye."}, "done", "bye"), bye))
		}

		all := group("simultaneous", members)
		visitors := make(chan *fixture.Caller, 1)
		go func() { v, _ := o.TryCallIn(all, "+12125550101"); visitors <- v }()
		o.AdaPhone.Wait("CALL_INCOMING", "")
		o.BobPhone.Wait("CALL_INCOMING", "")
		o.BobPhone.Do("accept", "")
		o.AdaPhone.Wait("CALL_CLOSED", "")
		o.BobPhone.Wait("CALL_ESTABLISHED", "")
		v := <-visitors
		v.WaitTone(0, fixture.BobTone)
		o.BobPhone.Do("hangup", "")
		v.WaitEnd()
		if r := o.CDR("+12125550101"); r.Agent == nil || r.Agent.ID != o.Bob.ID || r.String() != "inbound completed busy system 0" {
			t.Errorf("record of a group rung at once: %s, agent %+v", r, r.Agent)
		}

		turn := group("sequential", members)
		go func() { v, _ := o.TryCallIn(turn, "+12125550102"); visitors <- v }()
		o.AdaPhone.Wait("CALL_INCOMING", "")
		o.AdaPhone.Do("hangup", "") // busy here: the next one is rung
		o.BobPhone.Wait("CALL_INCOMING", "")
		o.BobPhone.Do("accept", "")
		v = <-visitors
		v.WaitTone(0, fixture.BobTone)
		v.Line.HangUp()
		var r fixture.CDR
		rig.Until(t, "the tag of the call", 0, func() bool { // the flow goes on after the caller has hung up
			r = o.CDR("+12125550102")
			return len(r.Tags) > 0
		})
		if r.Agent == nil || r.Agent.ID != o.Bob.ID || len(r.Tags) != 1 || r.String() != "inbound completed caller_hangup caller 0" {
			t.Errorf("record of a group rung in turn: %s, agent %+v, tags %v", r, r.Agent, r.Tags)
		}
		const tagged, gone = "group:answered tag:done", "group:answered tag:done play:gone" // by whether the call ended before the tag was written
		if got, _, _ := o.FlowPath(r.CallID, tagged, gone); got != tagged && got != gone {
			t.Errorf("way of who was answered: %s", got)
		}

		nobody := group("longest_idle", []map[string]any{{"user_id": o.Carol.ID}})
		if _, err := o.TryCallIn(nobody, "+12125550103"); err == nil || !strings.Contains(err.Error(), "486") {
			t.Errorf("who called a group without a telephone: %v, want 486", err)
		}
		if r := o.CDR("+12125550103"); r.String() != "inbound missed busy system 486" || *r.MissedReason != "no_answer" {
			t.Errorf("record: %s, missed %v", r, r.MissedReason)
		}
	})
}

func TestFlow_TransferFailureContinues(t *testing.T) {
	t.Parallel()
	o := &fixture.Office{Org: fixture.NewOrg(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))}
	o.Ada, o.Bob = o.AddUser("Ada"), o.AddUser("Bob")
	o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
	sorry := o.UploadTone(fixture.AgainTone, time.Second)
	way := o.AddFlowCarrier(o.AddFlow(
		fixture.Node("ada", "transfer", map[string]any{"to": "ext:" + o.Ada.Extension, "timeout_seconds": 5}, "failed", "sorry"),
		fixture.Node("sorry", "play", map[string]any{"audio_id": sorry}, "done", "bob"),
		fixture.Node("bob", "transfer", map[string]any{"to": "user:" + o.Bob.ID}, "failed", "bye"),
		fixture.Node("bye", "hangup", nil)))
	v := o.CallIn(way, "+12125550101")
	at := v.WaitTone(0, fixture.AgainTone)
	v.WaitTone(at, fixture.BobTone)
	v.Line.HangUp()
	if got, _, _ := o.FlowPath(o.CDR("+12125550101").CallID, "ada:failed sorry:done bob:answered"); got != "ada:failed sorry:done bob:answered" {
		t.Errorf("way of the caller: %s", got)
	}
}
