package call

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// isHeld reports whether a call or a leg of it is on hold.
func isHeld(c map[string]any) bool {
	return c["held"] == true || c["status"] == "on_hold" || heldLegs(c) != ""
}

// callOut makes a call from Ada through a carrier, a sipp that echoes. It returns the carrier and the path of the
// call.
func callOut(o *fixture.Office, x rig.Script) (far *rig.Sipp, path string) {
	o.T.Helper()
	way := o.AddCarrier(o.Ada.ID, nil)
	x.IP, x.Port, x.Echo = way.IP, way.Port, true
	far = o.Server.Sipp(x)
	o.AdaPhone.Dial("2125550142")
	c := o.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })
	o.HearsOnly("Ada", o.AdaPhone, fixture.AdaTone)
	return far, "/calls/" + c["id"].(string)
}

// wantHoldRefused fails unless a hold is refused with a status and a code, and the call goes on.
func wantHoldRefused(o *fixture.Office, path string, status int, code string) {
	o.T.Helper()
	r := o.Do("POST", path+"/hold", map[string]any{})
	if r.Status != status || r.JSON()["code"] != code {
		o.T.Errorf("the hold is answered %d %s; want %d %s", r.Status, r.Body, status, code)
	}
	wantTalking(o, path)
}

// wantTalking fails unless the call is in progress, was never held, and Ada hears her echo.
func wantTalking(o *fixture.Office, path string) {
	o.T.Helper()
	var c map[string]any
	if o.Want(200, "GET", path+"?expand=legs", nil, &c); isHeld(c) || c["status"] != "in_progress" {
		o.T.Errorf("the call: %v", c)
	}
	if kinds := o.TimelineSteps(path); slices.Contains(kinds, "call.held") {
		o.T.Errorf("the timeline tells %v", kinds)
	}
	o.HearsOnly("Ada", o.AdaPhone, fixture.AdaTone)
}

// wantNeverHeld ends the call and fails unless its record has no hold time.
func wantNeverHeld(o *fixture.Office, far *rig.Sipp) {
	o.T.Helper()
	o.AdaPhone.Do("hangup", "")
	far.Wait()
	if r := o.CDR("+12125550142"); r.String() != "outbound completed caller_hangup caller 0" && r.String() != "outbound completed agent_hangup agent 0" || r.Hold != 0 {
		o.T.Errorf("record: %s, held for %d s", r, r.Hold)
	}
}

// newCallerOffice makes an office in which only Ada has a telephone.
func newCallerOffice(t *testing.T) *fixture.Office {
	o := &fixture.Office{Org: fixture.NewOrg(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))}
	o.Ada = o.AddUser("Ada")
	o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{})
	return o
}

func TestHoldRequest_Music(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	path := o.ConnectCall()
	var held map[string]any
	o.Want(200, "POST", path+"/hold", map[string]any{}, &held)
	if held["status"] != "on_hold" || held["held"] != true || held["held_since"] == nil {
		t.Errorf("held call: %v", held)
	}
	o.Want(200, "POST", path+"/hold", map[string]any{}, nil)
	if status, allowed := o.WantInvalidState(path, "transfer/complete"); status != "on_hold" || !slices.Equal(allowed, []string{"end", "note", "tag", "dtmf", "mute",
		"unmute", "announce", "monitor", "unhold", "transfer", "participants", "recording/pause", "recording/stop"}) {
		t.Errorf("a call that is %s allows %v", status, allowed)
	}
	o.HearsOnly("Bob beside the hold", o.BobPhone)
	o.Want(200, "POST", path+"/unhold", map[string]any{}, &held)
	if held["status"] != "in_progress" || held["held"] != false {
		t.Errorf("call after the hold: %v", held)
	}
	o.HearsOnly("Bob after the hold", o.BobPhone, fixture.AdaTone)
	var ends sync.WaitGroup
	for range 4 { // several at once: whichever is first, the call has ended when each is answered
		ends.Go(func() {
			r := o.Do("POST", path+"/end", map[string]any{"reason": "enough"})
			if c := r.JSON(); r.Status != 200 || c["status"] != "completed" || c["end_reason"] != "api" {
				t.Errorf("an end of several is answered %d %s", r.Status, r.Body)
			}
		})
	}
	ends.Wait()
	o.Want(200, "POST", path+"/end", map[string]any{}, nil)
	if status, allowed := o.WantInvalidState(path, "unhold"); status != "completed" || !slices.Equal(allowed, []string{"note", "tag"}) {
		t.Errorf("a call that is %s allows %v", status, allowed)
	}
	o.AdaPhone.Wait("CALL_CLOSED", "")
	o.BobPhone.Wait("CALL_CLOSED", "")
	if r := o.CDR(o.Ada.Extension); r.String() != "internal completed api api 0" || r.Hold < 2 {
		t.Errorf("record: %s, held for %d s", r, r.Hold)
	}
}

func TestHoldRequest_Refused(t *testing.T) {
	t.Parallel()
	o := newCallerOffice(t)
	far, path := callOut(o, rig.Script{Scenario: "answer_refuses_hold", Status: 488})
	wantHoldRefused(o, path, 502, "carrier_error")
	wantNeverHeld(o, far)
}

// A telephone accepts a hold long after the request failed with 504. The server then resumes the telephone.
func TestHoldRequest_LateAnswerUndone(t *testing.T) {
	t.Parallel()
	o := newCallerOffice(t)
	far, path := callOut(o, rig.Script{Scenario: "answer_held", Hold: "recvonly", Ponder: 6500})
	began := time.Now()
	wantHoldRefused(o, path, 504, "action_timeout")
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
		offers = slices.Compact(offers) // removes retransmissions
		return len(offers) == 3
	})
	for i, want := range []string{"a=sendrecv", "a=sendonly", "a=sendrecv"} {
		if !strings.HasSuffix(offers[i], want) {
			t.Errorf("the telephone was offered %v; want %s", offers, want)
		}
	}
	wantTalking(o, path)
	wantNeverHeld(o, far)
}

// TestHoldRequest_MusicToLinphone holds a linphonec by request. It hears the music, because it keeps receiving after a=sendonly.
func TestHoldRequest_MusicToLinphone(t *testing.T) {
	t.Parallel()
	o, bob := fixture.NewOfficeWithLinphone(t)
	bob.Dial(o.Ada.Extension)
	o.HearsOnly("Bob", bob, fixture.AdaTone)
	path := "/calls/" + o.LiveCall(nil)["id"].(string)
	o.Want(200, "POST", path+"/hold", map[string]any{}, nil)
	o.HearsMusic("Bob, on hold,", bob)
	o.Want(200, "POST", path+"/unhold", map[string]any{}, nil)
	o.HearsOnly("Bob after the hold", bob, fixture.AdaTone)
	o.HearsOnly("Ada after the hold", o.AdaPhone, fixture.BobTone)
}
