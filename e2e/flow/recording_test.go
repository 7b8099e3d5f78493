package flow

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestRecordingMode_PerNumber(t *testing.T) {
	t.Parallel()
	o := &fixture.Office{Org: fixture.NewOrg(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))}
	o.Bob = o.AddUser("Bob")
	o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
	direct := o.AddCarrier(o.Bob.ID, nil)
	led := o.AddFlowCarrier(o.PublishFlow(map[string]any{"hunt_group": map[string]any{"members": []map[string]any{{"user_id": o.Bob.ID}}, "no_answer_to": "hangup"}}))
	for _, c := range []struct{ organisation, user, number, want string }{{"on", "on", "off", "off"}, {"off", "off", "on", "recording"},
		{"on", "inherit", "inherit", "recording"}, {"on", "off", "inherit", "off"}, {"off", "on", "inherit", "recording"}} {
		o.Want(200, "PATCH", "/users/"+o.Bob.ID, map[string]any{"recording_mode": c.user}, nil)
		o.Want(200, "PATCH", "/organization", map[string]any{"recording": map[string]any{"mode": c.organisation}}, nil)
		for kind, way := range map[string]fixture.Carrier{"direct": direct, "led": led} {
			if kind == "led" && c.user != "inherit" && c.number == "inherit" {
				continue // the mode of a user is that of calls to the user alone
			}
			o.Want(200, "PATCH", "/numbers/"+o.NumberID(way), map[string]any{"recording_mode": c.number}, nil)
			v := o.CallIn(way, "+12125550101")
			v.WaitTone(0, fixture.BobTone)
			live := o.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })
			if state := live["recording"].(map[string]any)["state"]; state != c.want {
				t.Errorf("%s: recording of a call to a number with %s, of a user with %s, in an organisation with %s, is %v, want %s", kind, c.number, c.user, c.organisation, state, c.want)
			}
			v.Line.HangUp()
			o.BobPhone.Wait("CALL_CLOSED", "")
			rig.Until(t, "the end of the call", 10*time.Second, func() bool {
				return len(o.Do("GET", "/calls/live", nil).JSON()["data"].([]any)) == 0
			})
		}
	}
}
