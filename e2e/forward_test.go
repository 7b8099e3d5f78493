package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// wants changes what a user wants of calls.
func (o *office) wants(u rig.User, settings map[string]any) {
	o.T.Helper()
	o.Want(200, "PATCH", "/users/"+u.ID, settings, nil)
}

// forwards is a change of where a user's calls go; all others go nowhere.
func forwards(kind, to string) map[string]any {
	all := map[string]any{"always": nil, "busy": nil, "no_answer": nil, "unreachable": nil}
	all[kind] = to
	return map[string]any{"forward": all}
}

// finds has Ada call a user, whose calls are to be found by Carol, and returns the call. Both hear each other, and Ada hangs up.
func (o *office) finds(called rig.User) string {
	o.T.Helper()
	o.adaPhone.Dial(called.Extension)
	o.carolPhone.Wait("CALL_ESTABLISHED", "")
	c := o.live(func(c map[string]any) bool { return c["status"] == "in_progress" })
	o.talks("Ada", o.adaPhone, carolTone)
	o.talks("Carol", o.carolPhone, adaTone)
	o.adaPhone.Do("hangup", "")
	o.carolPhone.Wait("CALL_CLOSED", "")
	id := c["id"].(string)
	return id
}

// told waits for a step of a call's timeline and returns what it tells.
func (o *office) told(callID, kind string) map[string]any {
	o.T.Helper()
	var found map[string]any
	rig.Until(o.T, kind+" in the timeline", 20*time.Second, func() bool {
		var page struct {
			Data []struct {
				Kind   string
				Detail map[string]any
			}
		}
		o.Want(200, "GET", "/calls/"+callID+"/events?limit=200", nil, &page)
		for _, s := range page.Data {
			if s.Kind == kind {
				found = s.Detail
			}
		}
		return found != nil
	})
	return found
}

// over waits for the end of Ada's call, and returns its record: the nth to a user.
func (o *office) over(n int, called rig.User) cdr {
	o.T.Helper()
	o.adaPhone.Wait("CALL_CLOSED", "")
	return o.records(n, "direction=internal&phone="+called.Extension)[0]
}

// rung are the users whose phones were rung in a call of Ada's, one for each phone.
func (o *office) rung(callID string) (users []string) {
	o.T.Helper()
	var c struct {
		Legs []struct {
			User string `json:"user_id"`
		}
	}
	o.Want(200, "GET", "/calls/"+callID+"?expand=legs", nil, &c)
	for _, l := range c.Legs {
		if l.User != "" && l.User != o.ada.ID {
			users = append(users, l.User)
		}
	}
	return users
}

func TestCallsFollowWhatPeopleWant(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: quiet}, func(t *testing.T, s *rig.Server) {
		o := newOffice(s)
		carol := "ext:" + o.carol.Extension
		refuses, away := o.AddUser("Dave"), o.AddUser("Eve")
		busy := func(u rig.User) {
			o.Server.Sipp(rig.Script{Scenario: "refuse", Status: 486, Port: o.sippPhone(u.SIP), From: u.SIP.Username})
		}
		calls := map[string]int{} // by who was called
		for _, c := range []struct {
			name   string
			called rig.User
			wants  map[string]any
			before func()
			reason string
			rang   bool // the phones of who was called
		}{
			{"always", o.bob, forwards("always", carol), nil, "always", false},
			{"do not disturb", o.bob, forwards("busy", "user:"+o.carol.ID), func() {
				o.Want(200, "PUT", "/users/"+o.bob.ID+"/dnd", map[string]any{"enabled": true}, nil)
			}, "do_not_disturb", false},
			{"busy", refuses, forwards("busy", carol), func() { busy(refuses) }, "busy", true},
			{"unreachable", away, forwards("unreachable", carol), nil, "unreachable", false},
		} {
			o.wants(c.called, c.wants)
			if c.before != nil {
				c.before()
			}
			id := o.finds(c.called)
			calls[c.called.ID]++
			if told := o.told(id, "forwarded"); told["reason"] != c.reason || told["user_id"] != c.called.ID {
				t.Errorf("%s: told %v", c.name, told)
			}
			if rang := slices.Contains(o.rung(id), c.called.ID); rang != c.rang {
				t.Errorf("%s: the phones of who was called rang: %v", c.name, rang)
			}
			r := o.over(calls[c.called.ID], c.called)
			if r.CallID != id || r.String() != "internal completed caller_hangup caller 0" || r.Agent == nil || r.Agent.ID != o.carol.ID {
				t.Errorf("%s: record %+v", c.name, r)
			}
		}
		o.Want(200, "PUT", "/users/"+o.bob.ID+"/dnd", map[string]any{"enabled": false}, nil)
		o.wants(o.bob, forwards("always", carol))
		o.wants(o.carol, forwards("always", "user:"+o.bob.ID))
		o.adaPhone.Do("dial", o.bob.Extension)
		r := o.over(3, o.bob)
		if told := o.told(r.CallID, "not_forwarded"); told["user_id"] != o.bob.ID {
			t.Errorf("two who forward to each other: told %v", told)
		}
		if rang := o.rung(r.CallID); r.Status == "completed" || len(rang) != 0 {
			t.Errorf("two who forward to each other: %+v; rung were %v", r, rang)
		}
	})
}

func TestPhonesRingInOrderAndThenSomebodyElse(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: quiet}, func(t *testing.T, s *rig.Server) {
		o := newOffice(s)
		dave := o.AddUser("Dave")
		_, login := o.secondPhone(dave)
		first, second := o.phone(dave, 700, rig.PhoneOptions{}), o.phone(rig.User{SIP: login}, carolTone, rig.PhoneOptions{})
		o.wants(dave, map[string]any{"ring_strategy": "in_order"})
		o.wants(dave, forwards("no_answer", "ext:"+o.carol.Extension))
		o.adaPhone.Do("dial", dave.Extension)
		first.Wait("CALL_INCOMING", "")
		c := o.live(func(c map[string]any) bool { return c["status"] == "ringing" })
		var legs []string
		rig.Until(t, "the leg of the first phone", 10*time.Second, func() bool { legs = o.rung(c["id"].(string)); return len(legs) > 0 })
		if len(legs) != 1 {
			t.Errorf("the second phone rings with the first: %v", legs)
		}
		first.Wait("CALL_CLOSED", "")
		second.Wait("CALL_INCOMING", "")
		second.Do("accept", "")
		o.adaPhone.Wait("CALL_ESTABLISHED", "")
		o.talks("Ada", o.adaPhone, carolTone)
		o.talks("the second phone", second, adaTone)
		o.adaPhone.Do("hangup", "")
		second.Wait("CALL_CLOSED", "")
		o.adaPhone.Wait("CALL_CLOSED", "")
		o.adaPhone.Do("dial", dave.Extension)
		first.Wait("CALL_INCOMING", "")
		second.Wait("CALL_INCOMING", "")
		o.carolPhone.Wait("CALL_ESTABLISHED", "")
		o.adaPhone.Wait("CALL_ESTABLISHED", "")
		o.talks("Ada", o.adaPhone, carolTone)
		o.talks("Carol", o.carolPhone, adaTone)
	})
}

func TestCallsAreForwardedOutsideThroughTheGate(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: quiet}, func(t *testing.T, s *rig.Server) {
		o := newOffice(s)
		way := o.carrier(o.bob.ID, nil)
		_, ulaw := tone(t, bobTone)
		o.wants(o.bob, forwards("always", "(212) 555-0142"))
		carrier := s.Sipp(rig.Script{Scenario: "answer", IP: way.ip, Port: way.port, Play: ulaw})
		o.adaPhone.Dial(o.bob.Extension)
		o.talks("Ada", o.adaPhone, bobTone)
		o.adaPhone.Do("hangup", "")
		carrier.Wait()
		invite := carrier.Received("INVITE ", 0)
		if !strings.HasPrefix(invite, "INVITE sip:+12125550142@") || !strings.Contains(rig.Field(invite, "Diversion"), way.number) ||
			!strings.Contains(rig.Field(invite, "History-Info"), way.number) || !strings.Contains(rig.Field(invite, "From")+rig.Field(invite, "P-Asserted-Identity"), way.number) {
			t.Errorf("the carrier got\n%s", invite)
		}
		if told := o.told(o.over(1, o.bob).CallID, "forwarded"); told["to"] != "(212) 555-0142" {
			t.Errorf("told %v", told)
		}
		var diversions []string
		for i := range 4 {
			diversions = append(diversions, fmt.Sprintf("Diversion: <sip:+1212555018%d@elsewhere.example>", i))
		}
		carrier = s.Sipp(rig.Script{Scenario: "answer", IP: way.ip, Port: way.port})
		s.Sipp(rig.Script{Scenario: "call", IP: way.ip, From: "+12125550177", Number: way.number, Talk: time.Second, Headers: diversions}).Wait()
		carrier.Wait()
		invite = carrier.Received("INVITE ", 0)
		if strings.Count(invite, "Diversion: ") != 5 || !strings.Contains(rig.Field(invite, "Diversion"), way.number) {
			t.Errorf("of a call from outside the carrier got\n%s", invite)
		}
		diversions = append(diversions, "Diversion: <sip:+12125550189@elsewhere.example>")
		s.Sipp(rig.Script{Scenario: "call_refused", IP: way.ip, From: "+12125550178", Number: way.number, Status: 480, Headers: diversions}).Wait()
		if told := o.told(o.record("+12125550178").CallID, "not_forwarded"); told["problem"] != "the call was forwarded too often" {
			t.Errorf("forwarded too often: told %v", told)
		}
		s.Command("outbound", "stop")
		o.adaPhone.Do("dial", o.bob.Extension)
		if told := o.told(o.over(2, o.bob).CallID, "not_rung"); told["reason"] != "blocked" || !strings.Contains(fmt.Sprint(told["phrase"]), "stopped") {
			t.Errorf("while outbound calls are stopped: told %v", told)
		}
		s.Command("outbound", "start")
		for _, to := range []string{"911", "ext:999", "user:usr_none", "flow:flw_none", "voicemail:x", "nobody"} {
			o.Want(422, "PATCH", "/users/"+o.bob.ID, forwards("always", to), nil)
		}
		o.wants(o.bob, forwards("always", "user:"+o.carol.ID))
		o.wants(o.bob, forwards("always", o.carol.Extension))
		o.finds(o.bob)
	})
}

func TestCallersOfWhoIsAwayLeaveAMessage(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: quiet}, func(t *testing.T, s *rig.Server) {
		o := newOffice(s)
		m := &mailroom{site: o.site}
		eve := o.AddUser("Eve") // has no phone
		voicemail := map[string]any{"voicemail": map[string]any{"enabled": true}}
		o.wants(o.bob, voicemail)
		o.wants(eve, voicemail)
		o.Want(200, "PUT", "/users/"+o.bob.ID+"/dnd", map[string]any{"enabled": true}, nil)
		for i, called := range []rig.User{o.bob, eve} {
			o.adaPhone.Dial(called.Extension)
			m.beeped(o.adaPhone, 30*time.Second)
			<-time.After(3 * time.Second) // she speaks
			o.adaPhone.Do("hangup", "")
			o.adaPhone.Wait("CALL_CLOSED", "")
			if got := m.messages(i + 1); got[0].From != o.ada.Extension || got[0].Seconds < 2 {
				t.Errorf("left for %s: %+v", called.Extension, got[0])
			}
		}
		o.Want(200, "PUT", "/users/"+o.bob.ID+"/dnd", map[string]any{"enabled": false}, nil)
		o.adaPhone.Dial(o.bob.Extension)
		o.bobPhone.Wait("CALL_ESTABLISHED", "")
		o.talks("Ada", o.adaPhone, bobTone)
	})
}
