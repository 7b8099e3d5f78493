package flow

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// wantForwarded makes Ada call a user and talk to Carol, and returns the call.
func wantForwarded(o *fixture.Office, called rig.User) string {
	o.T.Helper()
	o.AdaPhone.Dial(called.Extension)
	o.CarolPhone.Wait("CALL_ESTABLISHED", "")
	c := o.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })
	o.HearsOnly("Ada", o.AdaPhone, fixture.CarolTone)
	o.HearsOnly("Carol", o.CarolPhone, fixture.AdaTone)
	o.AdaPhone.Do("hangup", "")
	o.CarolPhone.Wait("CALL_CLOSED", "")
	id := c["id"].(string)
	return id
}

// cdrOf waits for the end of Ada's call and returns its record, the nth to a user.
func cdrOf(o *fixture.Office, n int, called rig.User) fixture.CDR {
	o.T.Helper()
	o.AdaPhone.Wait("CALL_CLOSED", "")
	return o.CDRs(n, "direction=internal&phone="+called.Extension)[0]
}

// rungUsers returns the users whose phones rang in a call of Ada's, one for each phone.
func rungUsers(o *fixture.Office, callID string) (users []string) {
	o.T.Helper()
	var c struct {
		Legs []struct {
			User string `json:"user_id"`
		}
	}
	o.Want(200, "GET", "/calls/"+callID+"?expand=legs", nil, &c)
	for _, l := range c.Legs {
		if l.User != "" && l.User != o.Ada.ID {
			users = append(users, l.User)
		}
	}
	return users
}

// wantLoopRefused makes Ada call a user whose calls are forwarded in a circle, the nth call of Ada's to it. The call fails with 480 at
// once and no telephone rings. last is the user whose forwarding is not carried out.
func wantLoopRefused(o *fixture.Office, name string, n int, called, last rig.User) {
	o.T.Helper()
	o.AdaPhone.Do("dial", called.Extension)
	o.AdaPhone.Wait("CALL_CLOSED", "480")
	r := o.CDRs(n, "direction=internal&phone="+called.Extension)[0]
	if told := o.WaitTimelineStep(r.CallID, "call.forward_failed"); told["user_id"] != last.ID {
		o.T.Errorf("%s: told %v", name, told)
	}
	if rang := rungUsers(o, r.CallID); r.Status == "completed" || len(rang) != 0 || r.SIPStatus == nil || *r.SIPStatus != 480 ||
		r.EndedAt.Sub(r.StartedAt) > 10*time.Second {
		o.T.Errorf("%s: %+v; rung were %v", name, r, rang)
	}
}

// TestForwarding_EveryRule proves that each rule of a user forwards the call, and that forwarding in a circle ends it:
// https://github.com/fusionpbx/fusionpbx/issues/2746
func TestForwarding_EveryRule(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		o := fixture.NewOffice(s)
		carol := "ext:" + o.Carol.Extension
		refuses, away := o.AddUser("Dave"), o.AddUser("Eve")
		busy := func(u rig.User) {
			o.Server.Sipp(rig.Script{Scenario: "refuse", Status: 486, Port: o.RegisterSipp(u.SIP), From: u.SIP.Username})
		}
		calls := map[string]int{} // by called user
		for _, c := range []struct {
			name   string
			called rig.User
			wants  map[string]any
			before func()
			reason string
			rang   bool // the phones of the called user rang
		}{
			{"always", o.Bob, fixture.Forwarding("always", carol), nil, "always", false},
			{"do not disturb", o.Bob, fixture.Forwarding("busy", "user:"+o.Carol.ID), func() {
				o.Want(200, "PUT", "/users/"+o.Bob.ID+"/dnd", map[string]any{"enabled": true}, nil)
			}, "do_not_disturb", false},
			{"busy", refuses, fixture.Forwarding("busy", carol), func() { busy(refuses) }, "busy", true},
			{"unreachable", away, fixture.Forwarding("unreachable", carol), nil, "unreachable", false},
		} {
			o.UpdateUser(c.called, c.wants)
			if c.before != nil {
				c.before()
			}
			id := wantForwarded(o, c.called)
			calls[c.called.ID]++
			if told := o.WaitTimelineStep(id, "call.forwarded"); told["reason"] != c.reason || told["user_id"] != c.called.ID {
				t.Errorf("%s: told %v", c.name, told)
			}
			if rang := slices.Contains(rungUsers(o, id), c.called.ID); rang != c.rang {
				t.Errorf("%s: the phones of who was called rang: %v", c.name, rang)
			}
			r := cdrOf(o, calls[c.called.ID], c.called)
			if r.CallID != id || r.String() != "internal completed caller_hangup caller 0" || r.Agent == nil || r.Agent.ID != o.Carol.ID {
				t.Errorf("%s: record %+v", c.name, r)
			}
		}
		o.Want(200, "PUT", "/users/"+o.Bob.ID+"/dnd", map[string]any{"enabled": false}, nil)
		o.UpdateUser(o.Bob, fixture.Forwarding("always", carol))
		o.UpdateUser(o.Carol, fixture.Forwarding("always", "user:"+o.Bob.ID))
		wantLoopRefused(o, "two who forward to each other", 3, o.Bob, o.Bob)
		o.UpdateUser(o.Carol, fixture.Forwarding("always", carol))
		wantLoopRefused(o, "one who forwards to itself", 1, o.Carol, o.Carol)
		wantLoopRefused(o, "one who forwards to that one", 4, o.Bob, o.Carol)
	})
}

func TestForwarding_RingInOrderThenNoAnswer(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 90*time.Second, "phones ring in turn until their ring time is over")
	rig.Either(t, rig.Options{Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		o := fixture.NewOffice(s)
		dave := o.AddUser("Dave")
		_, login := o.AddDevice(dave)
		first, second := o.Phone(dave, 700, rig.PhoneOptions{}), o.Phone(rig.User{SIP: login}, fixture.CarolTone, rig.PhoneOptions{})
		o.UpdateUser(dave, map[string]any{"ring_strategy": "in_order"})
		o.UpdateUser(dave, fixture.Forwarding("no_answer", "ext:"+o.Carol.Extension))
		o.AdaPhone.Do("dial", dave.Extension)
		first.Wait("CALL_INCOMING", "")
		c := o.LiveCall(func(c map[string]any) bool { return c["status"] == "ringing" })
		var legs []string
		rig.Until(t, "the leg of the first phone", 10*time.Second, func() bool { legs = rungUsers(o, c["id"].(string)); return len(legs) > 0 })
		if len(legs) != 1 {
			t.Errorf("the second phone rings with the first: %v", legs)
		}
		first.Wait("CALL_CLOSED", "")
		second.Wait("CALL_INCOMING", "")
		second.Do("accept", "")
		o.AdaPhone.Wait("CALL_ESTABLISHED", "")
		o.HearsOnly("Ada", o.AdaPhone, fixture.CarolTone)
		o.HearsOnly("the second phone", second, fixture.AdaTone)
		o.AdaPhone.Do("hangup", "")
		second.Wait("CALL_CLOSED", "")
		o.AdaPhone.Wait("CALL_CLOSED", "")
		o.AdaPhone.Do("dial", dave.Extension)
		first.Wait("CALL_INCOMING", "")
		second.Wait("CALL_INCOMING", "")
		o.CarolPhone.Wait("CALL_ESTABLISHED", "")
		o.AdaPhone.Wait("CALL_ESTABLISHED", "")
		o.HearsOnly("Ada", o.AdaPhone, fixture.CarolTone)
		o.HearsOnly("Carol", o.CarolPhone, fixture.AdaTone)
	})
}

func TestForwarding_ExternalWithDiversion(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Alone: true, Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		o := fixture.NewOffice(s)
		way := o.AddCarrier(o.Bob.ID, nil)
		_, ulaw := fixture.Tone(t, fixture.BobTone)
		o.UpdateUser(o.Bob, fixture.Forwarding("always", "(212) 555-0142"))
		carrier := s.Sipp(rig.Script{Scenario: "answer", IP: way.IP, Port: way.Port, Play: ulaw})
		o.AdaPhone.Dial(o.Bob.Extension)
		o.HearsOnly("Ada", o.AdaPhone, fixture.BobTone)
		o.AdaPhone.Do("hangup", "")
		carrier.Wait()
		invite := carrier.Received("INVITE ", 0)
		if !strings.HasPrefix(invite, "INVITE sip:+12125550142@") || !strings.Contains(rig.Field(invite, "Diversion"), way.Number) ||
			!strings.Contains(rig.Field(invite, "History-Info"), way.Number) || !strings.Contains(rig.Field(invite, "From")+rig.Field(invite, "P-Asserted-Identity"), way.Number) {
			t.Errorf("the carrier got\n%s", invite)
		}
		if told := o.WaitTimelineStep(cdrOf(o, 1, o.Bob).CallID, "call.forwarded"); told["to"] != "(212) 555-0142" {
			t.Errorf("told %v", told)
		}
		var diversions []string
		for i := range 4 {
			diversions = append(diversions, fmt.Sprintf("Diversion: <sip:+1212555018%d@elsewhere.example>", i))
		}
		carrier = s.Sipp(rig.Script{Scenario: "answer", IP: way.IP, Port: way.Port})
		s.Sipp(rig.Script{Scenario: "call", IP: way.IP, From: "+12125550177", Number: way.Number, Talk: time.Second,
			Headers: diversions}).Wait()
		carrier.Wait()
		invite = carrier.Received("INVITE ", 0)
		if strings.Count(invite, "Diversion: ") != 5 || !strings.Contains(rig.Field(invite, "Diversion"), way.Number) {
			t.Errorf("of a call from outside the carrier got\n%s", invite)
		}
		diversions = append(diversions, "Diversion: <sip:+12125550189@elsewhere.example>")
		s.Sipp(rig.Script{Scenario: "call_refused", IP: way.IP, From: "+12125550178", Number: way.Number, Status: 480,
			Headers: diversions}).Wait()
		if told := o.WaitTimelineStep(o.CDR("+12125550178").CallID, "call.forward_failed"); told["problem"] != "the call was forwarded too often" {
			t.Errorf("forwarded too often: told %v", told)
		}
		s.Command("admin", "outbound", "stop")
		o.AdaPhone.Do("dial", o.Bob.Extension)
		if told := o.WaitTimelineStep(cdrOf(o, 2, o.Bob).CallID, "ring.skipped"); told["reason"] != "blocked" || !strings.Contains(fmt.Sprint(told["phrase"]), "stopped") {
			t.Errorf("while outbound calls are stopped: told %v", told)
		}
		s.Command("admin", "outbound", "start")
		for _, to := range []string{"911", "ext:999", "user:usr_none", "flow:flw_none", "voicemail:x", "nobody"} {
			o.Want(422, "PATCH", "/users/"+o.Bob.ID, fixture.Forwarding("always", to), nil)
		}
		o.UpdateUser(o.Bob, fixture.Forwarding("always", "user:"+o.Carol.ID))
		o.UpdateUser(o.Bob, fixture.Forwarding("always", o.Carol.Extension))
		wantForwarded(o, o.Bob)
	})
}

func TestForwarding_Voicemail(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		o := fixture.NewOffice(s)
		eve := o.AddUser("Eve") // has no phone
		voicemail := map[string]any{"voicemail": map[string]any{"enabled": true}}
		o.UpdateUser(o.Bob, voicemail)
		o.UpdateUser(eve, voicemail)
		o.Want(200, "PUT", "/users/"+o.Bob.ID+"/dnd", map[string]any{"enabled": true}, nil)
		for i, called := range []rig.User{o.Bob, eve} {
			o.AdaPhone.Dial(called.Extension)
			o.WaitBeep(o.AdaPhone, 30*time.Second)
			<-time.After(3 * time.Second) // she speaks
			o.AdaPhone.Do("hangup", "")
			o.AdaPhone.Wait("CALL_CLOSED", "")
			if got := o.WaitMessages(i + 1); got[0].From != o.Ada.Extension || got[0].Seconds < 2 {
				t.Errorf("left for %s: %+v", called.Extension, got[0])
			}
		}
		o.Want(200, "PUT", "/users/"+o.Bob.ID+"/dnd", map[string]any{"enabled": false}, nil)
		o.AdaPhone.Dial(o.Bob.Extension)
		o.BobPhone.Wait("CALL_ESTABLISHED", "")
		o.HearsOnly("Ada", o.AdaPhone, fixture.BobTone)
	})
}

// TestForwarding_OwnMailboxStaysClosed proves that a caller leaves a message if the user forwards to their own extension, or if the phone
// redirects to *97. The menu of the mailbox opens for neither. No rule may forward to *97.
//
// https://github.com/2600hz/kazoo/pull/6730
// https://github.com/BelledonneCommunications/linphone-android/issues/1392
func TestForwarding_OwnMailboxStaysClosed(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	o := &fixture.Office{Org: fixture.NewOrg(s)}
	o.Ada, o.Bob = o.AddUser("Ada"), o.AddUser("Bob")
	dave := o.AddUser("Dave")
	o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{})
	mailbox := "sip:*97@" + s.SIP
	for _, rule := range []string{"always", "busy", "no_answer", "unreachable"} {
		for _, to := range []string{"*97", "ext:*97", "tel:*97", mailbox} {
			o.Want(422, "PATCH", "/users/"+o.Bob.ID, fixture.Forwarding(rule, to), nil)
		}
	}
	for _, u := range []rig.User{o.Bob, dave} {
		o.UpdateUser(u, map[string]any{"voicemail": map[string]any{"enabled": true}})
	}
	o.UpdateUser(o.Bob, fixture.Forwarding("always", o.Bob.Extension))
	redirects := s.Sipp(rig.Script{Scenario: "refuse", Status: 302, Refer: mailbox, Port: o.RegisterSipp(dave.SIP),
		From: dave.SIP.Username})
	for i, called := range []rig.User{o.Bob, dave} {
		o.AdaPhone.Dial(called.Extension)
		o.WaitBeep(o.AdaPhone, 30*time.Second)
		<-time.After(3 * time.Second) // she speaks
		o.AdaPhone.Do("hangup", "")
		o.AdaPhone.Wait("CALL_CLOSED", "")
		left := o.WaitMessages(i + 1)[0]
		steps := o.TimelineSteps("/calls/" + left.CallID)
		if left.From != o.Ada.Extension || left.Seconds < 2 || slices.Contains(steps, "mailbox.entered") {
			t.Errorf("left for %s: %+v, steps %v", called.Name, left, steps)
		}
	}
	redirects.Wait()
}

// TestForwarding_ChangedByItsUser changes an agent's forwarding with the agent's own key. The next calls follow it.
func TestForwarding_ChangedByItsUser(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		o := fixture.NewOffice(s)
		dave := o.AddUser("Dave")
		phone := o.Phone(dave, 700, rig.PhoneOptions{}) // rings until the call goes elsewhere
		var made struct{ Key string }
		o.Want(201, "POST", "/api-keys", map[string]any{"name": "own", "scopes": []string{"calls:read"}, "user_id": dave.ID}, &made)
		own := *o.Client
		own.Key = made.Key
		own.Want(403, "PATCH", "/users/"+o.Bob.ID, fixture.Forwarding("always", "ext:"+dave.Extension), nil)
		own.Want(200, "PATCH", "/me/settings", fixture.Forwarding("always", "ext:"+o.Carol.Extension), nil)
		id := wantForwarded(o, dave)
		if told := o.WaitTimelineStep(id, "call.forwarded"); told["reason"] != "always" || told["user_id"] != dave.ID {
			t.Errorf("told %v", told)
		}
		o.AdaPhone.Wait("CALL_CLOSED", "")
		rules := fixture.Forwarding("no_answer", "ext:"+o.Carol.Extension)
		rules["forward"].(map[string]any)["no_answer_seconds"] = 5
		own.Want(200, "PATCH", "/me/settings", rules, nil)
		o.AdaPhone.Do("dial", dave.Extension)
		phone.Wait("CALL_INCOMING", "")
		o.CarolPhone.Wait("CALL_ESTABLISHED", "")
		o.AdaPhone.Wait("CALL_ESTABLISHED", "")
		c := o.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })
		id = c["id"].(string)
		if told := o.WaitTimelineStep(id, "call.forwarded"); told["reason"] != "no_answer" {
			t.Errorf("told %v", told)
		}
		rang := o.TimelineTime(id, "call.forwarded").Sub(o.TimelineTime(id, "leg.invited"))
		if rang < 4*time.Second || rang > 20*time.Second {
			t.Errorf("the phone rang for %s, want the 5 s that its user chose, not the usual 25", rang)
		}
	})
}
