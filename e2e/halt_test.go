package e2e

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// While the operator has stopped outbound calls, nothing leaves by any way there is to ask for it, and the call in progress goes on.
func TestNothingLeavesByAnyWayWhileOutboundCallsAreStopped(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: quiet}, func(t *testing.T, s *rig.Server) {
		o := newOffice(s)
		way := o.carrier(o.bob.ID, nil)
		const outside = "+12125550142"
		flow := o.flow(
			node("out", "transfer", map[string]any{"to": outside}, "failed", "sorry"),
			node("sorry", "play", map[string]any{"audio_id": o.sound(againTone, time.Second)}, "done", "bye"), node("bye", "hangup", nil))
		led := o.line(flow)
		carrier := s.Sipp(rig.Script{Scenario: "answer", IP: way.ip, Port: way.port, Limit: 5 * time.Minute})
		dave := o.AddUser("Dave") // baresip, other than his telephone, ends a call that it may not hand over
		say, _ := tone(t, bobTone)
		davePhone := s.Linphone(dave.SIP, rig.LinphoneOptions{Say: say})
		path := o.call()
		s.Command("outbound", "stop")
		assistant := o.assistant("accept")
		for _, c := range []struct {
			name string
			try  func(o *office)
		}{
			{"a transfer by request", func(o *office) {
				o.stopped(o.Do("POST", path+"/transfer", map[string]any{"to": outside}))
			}},
			{"a warm transfer by request", func(o *office) {
				o.stopped(o.Do("POST", path+"/transfer", map[string]any{"to": outside, "mode": "warm"}))
			}},
			{"a phone's REFER", func(o *office) {
				id := davePhone.Dial(o.carol.Extension)
				o.talks("Dave", davePhone, carolTone)
				before := refusedByHalt(o.Server)
				davePhone.Do("transfer " + id + " sip:" + outside + "@" + s.SIP)
				rig.Until(o.T, "the refusal of Dave's transfer", 10*time.Second, func() bool { return refusedByHalt(o.Server) > before })
				o.talks("Dave, refused,", davePhone, carolTone)
				o.talks("Carol, not handed over,", o.carolPhone, bobTone)
				davePhone.Do("terminate")
				o.carolPhone.Wait("CALL_CLOSED", "")
			}},
			{"a program's call to nobody here", func(o *office) {
				o.stopped(o.Do("POST", "/calls", map[string]any{"to": outside, "flow_id": flow}))
			}},
			{"a program's call for a user, when they have picked up", func(o *office) {
				r := o.Do("POST", "/calls", map[string]any{"to": outside, "user_id": o.carol.ID})
				o.blocked(r.JSON())
			}},
			{"an assistant's call", func(o *office) {
				made, _ := assistant.must("make_call", map[string]any{"to": outside, "user_id": o.carol.ID})["call"].(map[string]any)
				o.blocked(made)
			}},
			{"a callback", func(o *office) { o.callsBack(outside) }},
			{"a flow's transfer", func(o *office) {
				v := o.visit(led, "+12125550101")
				v.hears(0, againTone)
				v.ends()
				if got, _, timeline := o.passed(o.record("+12125550101").CallID); got != "out:failed sorry:done bye" || !strings.Contains(timeline, "stopped") {
					o.T.Errorf("way of the caller: %s\n%s", got, timeline)
				}
			}},
		} {
			t.Run(c.name, func(t *testing.T) {
				own := o.here(t)
				c.try(own)
				own.talks("Ada", o.adaPhone, bobTone)
				own.talks("Bob", o.bobPhone, adaTone)
			})
		}
		s.Command("outbound", "start")
		o.Want(200, "POST", path+"/transfer", map[string]any{"to": outside}, nil)
		o.bobPhone.Wait("CALL_CLOSED", "")
		o.adaPhone.Do("hangup", "")
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

// here is the office in a subtest.
func (o *office) here(t *testing.T) *office {
	own := *o
	own.site = o.in(t)
	return &own
}

// refusedByHalt is how many calls were refused because outbound calls are stopped.
func refusedByHalt(s *rig.Server) int {
	return figure(s, `soniq_outbound_refused_total{reason="outbound_halted"}`)
}

// stopped fails unless a request was refused because outbound calls are stopped.
func (o *office) stopped(r rig.Response) {
	o.T.Helper()
	if said := string(r.Body); r.Status != 422 || r.JSON()["code"] != "destination_not_allowed" || !strings.Contains(said, "stopped") {
		o.T.Errorf("refused with %d %s", r.Status, said)
	}
}

// blocked waits for the end of a call that was placed, and fails unless it did not get further than to Carol.
func (o *office) blocked(made map[string]any) {
	o.T.Helper()
	o.carolPhone.Wait("CALL_CLOSED", "")
	var c map[string]any
	rig.Until(o.T, "the end of the call", 20*time.Second, func() bool {
		o.Want(200, "GET", fmt.Sprint("/calls/", made["id"]), nil, &c)
		return c["ended_at"] != nil
	})
	if c["end_reason"] != "blocked" || c["hangup_by"] != "system" {
		o.T.Errorf("the call ended with %v by %v", c["end_reason"], c["hangup_by"])
	}
}

// callsBack asks for a callback that is tried once, and waits until that has failed.
func (o *office) callsBack(number string) {
	o.T.Helper()
	r := o.Do("POST", "/callbacks", map[string]any{"to": number, "user_id": o.carol.ID, "max_attempts": 1})
	if r.Status != 201 {
		o.stopped(r)
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
