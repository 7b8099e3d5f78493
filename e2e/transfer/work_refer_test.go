package transfer

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// wantWork fails unless the statistics of people and the analytics agree on the calls and seconds of each. The seconds of all are together
// at most talk. It returns the figures in the order of the users.
func wantWork(o *fixture.Office, talk int, users ...rig.User) []work {
	t := o.Server.T
	t.Helper()
	var r struct {
		Data []struct {
			ID      string `json:"agent_id"`
			Handled int
			Talk    int `json:"talk_seconds"`
		}
	}
	o.Want(200, "GET", "/analytics/agents", nil, &r)
	all, sum := make([]work, len(users)), 0
	for i, u := range users {
		o.Want(200, "GET", "/agents/"+u.ID+"/stats", nil, &all[i])
		var counted work
		for _, a := range r.Data {
			if a.ID == u.ID {
				counted = work{a.Handled, a.Talk}
			}
		}
		if counted != all[i] {
			t.Errorf("%s: analytics %+v, statistics %+v", u.Extension, counted, all[i])
		}
		sum += all[i].Talk
	}
	if sum > talk {
		t.Errorf("people talked %d s together, their calls %d s: %+v", sum, talk, all)
	}
	return all
}

// TestTransfer_ReferWithReplacesSeconds proves the same for the attended transfer of a phone (REFER with Replaces): the
// target has one call, and the consultation before counts for nobody.
//
// https://github.com/asterisk/asterisk/issues/607
func TestTransfer_ReferWithReplacesSeconds(t *testing.T) {
	t.Parallel()
	o, bob := fixture.NewOfficeWithLinphone(t)
	o.AdaPhone.Dial(o.Bob.Extension)
	first := bob.Wait(`Call (\d+) with .* connected`)[1]
	id := o.LiveCall(nil)["id"]
	o.AdaPhone.Since(o.AdaPhone.Mark(), 2*time.Second)
	bob.Do("pause")
	second := bob.Dial(o.Carol.Extension)
	o.CarolPhone.Wait("CALL_ESTABLISHED", "")
	o.CarolPhone.Since(o.CarolPhone.Mark(), 2*time.Second)
	bob.Do("transfer " + first + " --to-call " + second)
	bob.Wait(`Call ` + first + ` with .* ended`)
	o.CarolPhone.Since(o.CarolPhone.Mark(), 3*time.Second)
	o.CarolPhone.Do("hangup", "")
	for _, r := range o.CDRs(2, "") {
		if r.CallID != id {
			continue
		}
		all := wantWork(o, r.Talk, o.Ada, o.Bob, o.Carol)
		if ada, bob, carol := all[0], all[1], all[2]; ada != (work{}) || bob.Answered != 1 || carol.Answered != 1 || bob.Talk < 1 ||
			carol.Talk < 2 {
			t.Errorf("Ada %+v, Bob %+v, Carol %+v, the call %d s", ada, bob, carol, r.Talk)
		}
		if r.Agent == nil || r.Agent.ID != o.Carol.ID {
			t.Errorf("agent of the record: %v", r.Agent)
		}
		wantLegsInOrder(o, r.CallID)
	}
}

// TestReplaces_CallerOnOtherPhone proves that a caller who continues on another phone (Replaces, RFC 3891) stays the
// caller: the seconds are those of the person who was called.
func TestReplaces_CallerOnOtherPhone(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	path := o.ConnectCall()
	taker := o.Server.Sipp(rig.Script{Scenario: "call", Login: &o.Ada.SIP, Number: o.Bob.Extension, Talk: 4 * time.Second,
		Headers: []string{"Replaces: " + dialogOf(o, path, o.AdaPhone, true)}})
	o.AdaPhone.Wait("CALL_CLOSED", "")
	taker.Wait()
	r := o.CDR(o.Ada.Extension)
	all := wantWork(o, r.Talk, o.Ada, o.Bob)
	if ada, bob := all[0], all[1]; ada != (work{}) || bob.Answered != 1 || bob.Talk != r.Talk {
		t.Errorf("Ada %+v, Bob %+v, the call %d s", ada, bob, r.Talk)
	}
	if r.Agent == nil || r.Agent.ID != o.Bob.ID {
		t.Errorf("agent of the record: %v", r.Agent)
	}
}

// wantLegsInOrder fails if a leg of a call was answered before it started.
func wantLegsInOrder(o *fixture.Office, id string) {
	o.Server.T.Helper()
	var c struct {
		Legs []struct {
			ID       string
			Started  time.Time  `json:"started_at"`
			Answered *time.Time `json:"answered_at"`
		}
	}
	o.Want(200, "GET", "/calls/"+id+"?expand=legs", nil, &c)
	for _, l := range c.Legs {
		if l.Answered != nil && l.Answered.Before(l.Started) {
			o.Server.T.Errorf("leg %s started at %s and was answered at %s", l.ID, l.Started, l.Answered)
		}
	}
}

// missedBy returns how many calls a person missed.
func missedBy(o *fixture.Office, u rig.User) int {
	o.Server.T.Helper()
	var w struct{ Missed int }
	o.Want(200, "GET", "/agents/"+u.ID+"/stats", nil, &w)
	return w.Missed
}
