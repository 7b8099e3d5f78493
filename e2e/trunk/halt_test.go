package trunk

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/fixture/mcpclient"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

func TestHalt_OutboundRefusedUntilResumed(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Alone: true, Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	way := company.AddCarrier(user.ID, nil)
	carrier := s.Sipp(rig.Script{Scenario: "answer", IP: way.IP, Port: way.Port})
	chat := s.Sipp(rig.Script{Scenario: "call_until_bye", Login: &user.SIP, Number: "+12125550142"})
	company.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })
	if said := s.Command("admin", "outbound", "stop", "--calls"); !strings.Contains(said, "1 call(s) were ended") {
		t.Errorf("soniq admin outbound stop: %s", said)
	}
	chat.Wait()
	carrier.Wait()
	s.Sipp(rig.Script{Scenario: "call_refused", Status: 403, Login: &user.SIP, Number: "+12125550143"}).Wait()
}

// While the operator has stopped outbound calls, every way to request one is refused, and the call in progress
// continues.
func TestHalt_EveryOriginBlocked(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 90*time.Second, "tries every way out, one after the other")
	rig.Either(t, rig.Options{Alone: true, Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		o := fixture.NewOffice(s)
		way := o.AddCarrier(o.Bob.ID, nil)
		const outside = "+12125550142"
		flow := o.AddFlow(
			fixture.Node("out", "transfer", map[string]any{"to": outside}, "failed", "sorry"),
			fixture.Node("sorry", "play", map[string]any{"audio_id": o.UploadTone(fixture.AgainTone, time.Second)}, "done", "bye"), fixture.Node("bye", "hangup", nil))
		led := o.AddFlowCarrier(flow)
		carrier := s.Sipp(rig.Script{Scenario: "answer", IP: way.IP, Port: way.Port, Limit: 5 * time.Minute})
		dave := o.AddUser("Dave") // baresip, other than his telephone, ends a call that it may not hand over
		say, _ := fixture.Tone(t, fixture.BobTone)
		davePhone := s.Linphone(dave.SIP, rig.LinphoneOptions{Say: say})
		path := o.ConnectCall()
		s.Command("admin", "outbound", "stop")
		assistant := mcpclient.Connect(o.Org, "accept")
		for _, c := range []struct {
			name string
			try  func(o *fixture.Office)
		}{
			{"a transfer by request", func(o *fixture.Office) {
				wantHalted(o, o.Do("POST", path+"/transfer", map[string]any{"to": outside}))
			}},
			{"a warm transfer by request", func(o *fixture.Office) {
				wantHalted(o, o.Do("POST", path+"/transfer", map[string]any{"to": outside, "mode": "warm"}))
			}},
			{"a phone's REFER", func(o *fixture.Office) {
				id := davePhone.Dial(o.Carol.Extension)
				o.HearsOnly("Dave", davePhone, fixture.CarolTone)
				before := haltRefusals(o.Server)
				davePhone.Do("transfer " + id + " sip:" + outside + "@" + s.SIP)
				rig.Until(o.T, "the refusal of Dave's transfer", 10*time.Second, func() bool { return haltRefusals(o.Server) > before })
				o.HearsOnly("Dave, refused,", davePhone, fixture.CarolTone)
				o.HearsOnly("Carol, not handed over,", o.CarolPhone, fixture.BobTone)
				davePhone.Do("terminate")
				o.CarolPhone.Wait("CALL_CLOSED", "")
			}},
			{"a program's call to nobody here", func(o *fixture.Office) {
				wantHalted(o, o.Do("POST", "/calls", map[string]any{"to": outside, "flow_id": flow}))
			}},
			{"a program's call for a user, when they have picked up", func(o *fixture.Office) {
				r := o.Do("POST", "/calls", map[string]any{"to": outside, "user_id": o.Carol.ID})
				wantBlocked(o, r.JSON())
			}},
			{"an assistant's call", func(o *fixture.Office) {
				made, _ := assistant.MustCall("make_call", map[string]any{"to": outside, "user_id": o.Carol.ID})["call"].(map[string]any)
				wantBlocked(o, made)
			}},
			{"a callback", func(o *fixture.Office) { wantCallbackFailed(o, outside) }},
			{"a flow's transfer", func(o *fixture.Office) {
				v := o.CallIn(led, "+12125550101")
				v.WaitTone(0, fixture.AgainTone)
				v.WaitEnd()
				if got, _, timeline := o.FlowPath(o.CDR("+12125550101").CallID, "out:failed sorry:done bye"); got != "out:failed sorry:done bye" || !strings.Contains(timeline, "stopped") {
					o.T.Errorf("way of the caller: %s\n%s", got, timeline)
				}
			}},
		} {
			t.Run(c.name, func(t *testing.T) {
				own := inSubtest(o, t)
				c.try(own)
				own.HearsOnly("Ada", o.AdaPhone, fixture.BobTone)
				own.HearsOnly("Bob", o.BobPhone, fixture.AdaTone)
			})
		}
		s.Command("admin", "outbound", "start")
		o.Want(200, "POST", path+"/transfer", map[string]any{"to": outside}, nil)
		o.BobPhone.Wait("CALL_CLOSED", "")
		o.AdaPhone.Do("hangup", "")
		carrier.Wait()
		if first := carrier.Received("INVITE ", 0); !strings.HasPrefix(first, "INVITE sip:"+outside+"@") {
			t.Errorf("the carrier got %s", first)
		}
		for _, m := range carrier.Messages()[1:] {
			if m.Received && strings.HasPrefix(m.Text, "INVITE ") {
				t.Errorf("the carrier got more than the one call after outbound calls were allowed again:\n%s", m.Text)
			}
		}
	})
}

// inSubtest returns the office for a subtest.
func inSubtest(o *fixture.Office, t *testing.T) *fixture.Office {
	own := *o
	own.Org = o.In(t)
	return &own
}

// haltRefusals returns how many calls were refused because outbound calls are stopped.
func haltRefusals(s *rig.Server) int {
	return fixture.Metric(s, `soniq_outbound_refused_total{reason="outbound_halted"}`)
}

// wantHalted fails unless a request was refused because outbound calls are stopped.
func wantHalted(o *fixture.Office, r rig.Response) {
	o.T.Helper()
	if said := string(r.Body); r.Status != 422 || r.JSON()["code"] != "destination_not_allowed" || !strings.Contains(said, "stopped") {
		o.T.Errorf("refused with %d %s", r.Status, said)
	}
}

// wantBlocked waits for the end of a placed call, and fails unless it was blocked.
func wantBlocked(o *fixture.Office, made map[string]any) {
	o.T.Helper()
	o.CarolPhone.Wait("CALL_CLOSED", "")
	var c map[string]any
	rig.Until(o.T, "the end of the call", 20*time.Second, func() bool {
		o.Want(200, "GET", fmt.Sprint("/calls/", made["id"]), nil, &c)
		return c["ended_at"] != nil
	})
	if c["end_reason"] != "blocked" || c["hangup_by"] != "system" {
		o.T.Errorf("the call ended with %v by %v", c["end_reason"], c["hangup_by"])
	}
}

// wantCallbackFailed requests a callback with one attempt, and waits until it has failed.
func wantCallbackFailed(o *fixture.Office, number string) {
	o.T.Helper()
	r := o.Do("POST", "/callbacks", map[string]any{"to": number, "user_id": o.Carol.ID, "max_attempts": 1})
	if r.Status != 201 {
		wantHalted(o, r)
		return
	}
	var c struct {
		Status   string
		Attempts []struct{ Result string }
	}
	rig.Until(o.T, "the callback's end", 30*time.Second, func() bool {
		o.Want(200, "GET", "/callbacks/"+url.PathEscape(r.JSON()["id"].(string)), nil, &c)
		return c.Status == "failed"
	})
	if got := fmt.Sprint(c.Attempts); got != "[{failed}]" {
		o.T.Errorf("attempts of the callback: %s", got)
	}
}
