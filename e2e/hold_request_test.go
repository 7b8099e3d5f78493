package e2e

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// heldAtAll tells whether a call, or a leg of it, is said to be on hold.
func heldAtAll(c map[string]any) bool {
	return c["held"] == true || c["status"] == "on_hold" || heldLegs(c) != ""
}

// out has Ada's telephone call somebody through a carrier, a sipp that speaks what it hears; the path of the call is returned.
func (o *office) out(x rig.Script) (far *rig.Sipp, path string) {
	o.T.Helper()
	way := o.carrier(o.ada.ID, nil)
	x.IP, x.Port, x.Echo = way.ip, way.port, true
	far = o.Server.Sipp(x)
	o.adaPhone.Dial("2125550142")
	c := o.live(func(c map[string]any) bool { return c["status"] == "in_progress" })
	o.talks("Ada", o.adaPhone, adaTone)
	return far, "/calls/" + c["id"].(string)
}

// notHeld fails unless a hold was refused with a status and a code, and the call goes on as it was.
func (o *office) notHeld(path string, status int, code string) {
	o.T.Helper()
	r := o.Do("POST", path+"/hold", map[string]any{})
	if r.Status != status || r.JSON()["code"] != code {
		o.T.Errorf("the hold is answered %d %s; want %d %s", r.Status, r.Body, status, code)
	}
	o.asItWas(path)
}

func (o *office) asItWas(path string) {
	o.T.Helper()
	var c map[string]any
	if o.Want(200, "GET", path+"?expand=legs", nil, &c); heldAtAll(c) || c["status"] != "in_progress" {
		o.T.Errorf("the call: %v", c)
	}
	if kinds := o.kinds(path); slices.Contains(kinds, "call.held") {
		o.T.Errorf("the timeline tells %v", kinds)
	}
	o.talks("Ada", o.adaPhone, adaTone)
}

// neverHeld hangs up and looks at the record.
func (o *office) neverHeld(far *rig.Sipp) {
	o.T.Helper()
	o.adaPhone.Do("hangup", "")
	far.Wait()
	if r := o.record("+12125550142"); r.String() != "outbound completed caller_hangup caller 0" && r.String() != "outbound completed agent_hangup agent 0" || r.Hold != 0 {
		o.T.Errorf("record: %s, held for %d s", r, r.Hold)
	}
}

func newCaller(t *testing.T) *office {
	o := &office{site: newSite(rig.Start(t, rig.Options{Env: quiet}))}
	o.ada = o.AddUser("Ada")
	o.adaPhone = o.phone(o.ada, adaTone, rig.PhoneOptions{})
	return o
}

func TestARequestHoldsACallWithMusic(t *testing.T) {
	t.Parallel()
	o := newOffice(rig.Start(t, rig.Options{Env: quiet}))
	path := o.call()
	var held map[string]any
	o.Want(200, "POST", path+"/hold", map[string]any{}, &held)
	if held["status"] != "on_hold" || held["held"] != true || held["held_since"] == nil {
		t.Errorf("held call: %v", held)
	}
	o.Want(200, "POST", path+"/hold", map[string]any{}, nil)
	if status, allowed := o.forbids(path, "transfer/complete"); status != "on_hold" || !slices.Equal(allowed, []string{"end", "note", "tag", "dtmf", "mute",
		"unmute", "announce", "monitor", "unhold", "transfer", "participants", "recording/pause", "recording/stop"}) {
		t.Errorf("a call that is %s allows %v", status, allowed)
	}
	o.talks("Bob beside the hold", o.bobPhone)
	o.Want(200, "POST", path+"/unhold", map[string]any{}, &held)
	if held["status"] != "in_progress" || held["held"] != false {
		t.Errorf("call after the hold: %v", held)
	}
	o.talks("Bob after the hold", o.bobPhone, adaTone)
	var ends sync.WaitGroup
	for range 4 { // whoever comes first: it has ended when they are answered
		ends.Go(func() {
			r := o.Do("POST", path+"/end", map[string]any{"reason": "enough"})
			if c := r.JSON(); r.Status != 200 || c["status"] != "completed" || c["end_reason"] != "api" {
				t.Errorf("an end of several is answered %d %s", r.Status, r.Body)
			}
		})
	}
	ends.Wait()
	o.Want(200, "POST", path+"/end", map[string]any{}, nil)
	if status, allowed := o.forbids(path, "unhold"); status != "completed" || !slices.Equal(allowed, []string{"note", "tag"}) {
		t.Errorf("a call that is %s allows %v", status, allowed)
	}
	o.adaPhone.Wait("CALL_CLOSED", "")
	o.bobPhone.Wait("CALL_CLOSED", "")
	if r := o.record(o.ada.Extension); r.String() != "internal completed api api 0" || r.Hold < 2 {
		t.Errorf("record: %s, held for %d s", r, r.Hold)
	}
}

// forbids fails unless a call is in no state for an action, and returns which it is in and what that allows.
func (s *site) forbids(path, action string) (status string, allowed []string) {
	s.T.Helper()
	var no struct {
		Code    string
		Status  string   `json:"current_status"`
		Allowed []string `json:"allowed_actions"`
	}
	if s.Want(409, "POST", path+"/"+action, map[string]any{}, &no); no.Code != "invalid_state" {
		s.T.Errorf("%s is refused with %+v", action, no)
	}
	return no.Status, no.Allowed
}

func TestAHoldByRequestThatIsRefusedChangesNothing(t *testing.T) {
	t.Parallel()
	o := newCaller(t)
	far, path := o.out(rig.Script{Scenario: "answer_refuses_hold", Status: 488})
	o.notHeld(path, 502, "carrier_error")
	o.neverHeld(far)
}

// A telephone agrees to be held when who asked has long been told that it did not: it is taken back.
func TestAHoldByRequestThatIsAgreedToTooLateIsUndone(t *testing.T) {
	t.Parallel()
	o := newCaller(t)
	far, path := o.out(rig.Script{Scenario: "answer_held", Hold: "recvonly", Ponder: 6500})
	began := time.Now()
	o.notHeld(path, 504, "action_timeout")
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("the answer took %s", took)
	}
	var offers []string
	rig.Until(t, "the offer that takes the telephone back", 20*time.Second, func() bool {
		offers = nil
		for _, m := range far.Messages() {
			if m.Received && strings.HasPrefix(m.Text, "INVITE ") {
				offers = append(offers, strings.Fields(rig.Field(m.Text, "CSeq"))[0]+" "+direction.FindString(m.Text))
			}
		}
		offers = slices.Compact(offers) // of those that were repeated
		return len(offers) == 3
	})
	for i, want := range []string{"a=sendrecv", "a=sendonly", "a=sendrecv"} {
		if !strings.HasSuffix(offers[i], want) {
			t.Errorf("the telephone was offered %v; want %s", offers, want)
		}
	}
	o.asItWas(path)
	o.neverHeld(far)
}
