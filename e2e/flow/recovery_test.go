package flow

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestMenu_SurvivesKill(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		o := &fixture.Office{Org: fixture.NewOrg(s)}
		o.Bob = o.AddUser("Bob")
		greeting := o.UploadTone(fixture.GreetingTone, 2*time.Second)
		way := o.AddFlowCarrier(o.PublishFlow(map[string]any{"ivr": map[string]any{"greeting": greeting, "options": map[string]any{"1": "ext:" + o.Bob.Extension},
			"timeout_to": "hangup"}}))
		v := o.CallIn(way, "+12125550101")
		v.WaitTone(0, fixture.GreetingTone)
		s.Kill()
		s.Start()
		v.WaitTone(v.Mark()+4000, fixture.GreetingTone) // from the start
		o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
		v.Press("1")
		v.WaitTone(v.Mark(), fixture.BobTone)
		if d := fixture.ToneDuration(o.BobPhone.Since(o.BobPhone.Mark(), time.Second), fixture.CallerTone); d < 500*time.Millisecond {
			t.Errorf("Bob heard the caller for %s of a second", d)
		}
		v.Line.HangUp()
		if r := o.CDR("+12125550101"); r.String() != "inbound completed caller_hangup caller 0" || r.FlowVersion == nil {
			t.Errorf("record: %s", r)
		}
	})
}
