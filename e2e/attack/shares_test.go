package attack

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// ringUntilRefused has a handset call an extension again and again until a call is refused. It returns the number of
// calls that ring, and the status of the refusal.
func ringUntilRefused(
	t *testing.T, h *fixture.Handset, number string, rings <-chan *fixture.IncomingCall, most int,
) (ringing int, status string) {
	t.Helper()
	for range most {
		d := h.Dial(number)
		ended := make(chan string, 1)
		go func() { ended <- d.WaitEnd() }()
		select {
		case <-rings:
			ringing++
		case status = <-ended:
			return ringing, status
		}
	}
	t.Fatalf("%d calls at once, and none was refused", most)
	return ringing, ""
}

// One telephone's password cannot take the RTP ports of others: another organisation's calls and emergency calls go on,
// and so do the emergency calls of the organisation itself.
func TestShares_OneOrganisationLeavesPorts(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--rtp-ports", "24000-24079", "--device-calls", "0", "--user-calls", "0",
		"--drain", "1s"}})
	rings := make(chan *fixture.IncomingCall, 100)
	greedy, other := fixture.NewOrg(s), fixture.NewOrg(s)
	eve, bob := greedy.AddHandset("Eve", rings), greedy.AddHandset("Bob", rings)
	n, status := ringUntilRefused(t, eve, bob.User.Extension, rings, 40)
	if status != "503" || n < 5 || n > 9 {
		t.Errorf("%d calls of the organisation, then %s; want half of what is free, 8, and 503", n, status)
	}
	limited := greedy.CDRs(1, "status=failed")[0]
	if step := greedy.WaitTimelineStep(limited.CallID, "call.limited"); step["limit"] != "stream_share" {
		t.Errorf("the timeline: %v", step)
	}
	for _, o := range []*fixture.Org{other, greedy} {
		way := o.AddCarrier("", map[string]any{"emergency_capable": true})
		help := s.Sipp(rig.Script{Scenario: "answer", IP: way.IP, Port: way.Port})
		caller := eve
		if o == other {
			caller = o.AddHandset("Ada", rings)
			callee := o.AddHandset("Carol", rings)
			d := caller.Dial(callee.User.Extension)
			fixture.NextRinging(t, rings).Answer()
			d.WaitAnswered().HangUp()
		}
		caller.Dial("911").WaitAnswered().HangUp()
		help.Wait()
	}
	if refused := fixture.Metric(s, `soniq_limit_refusals_total{limit="stream_share"}`); refused < 1 {
		t.Error("the refusal is not counted")
	}
}

// A device, a user and an organisation have a most of calls, internal ones too. The refusal says so, and an emergency
// call is not refused.
func TestCalls_LimitsOfDeviceUserAndOrganisation(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--device-calls", "2", "--user-calls", "3", "--org-calls", "4", "--drain", "1s"}})
	rings := make(chan *fixture.IncomingCall, 100)
	o := fixture.NewOrg(s)
	ada, bob := o.AddHandset("Ada", rings), o.AddHandset("Bob", rings)
	n, status := ringUntilRefused(t, ada, bob.User.Extension, rings, 10)
	if n != 2 || status != "486" {
		t.Errorf("%d calls of the device, then %s; want 2 and 486", n, status)
	}
	place := func(to string) rig.Response {
		return o.Do("POST", "/calls", map[string]any{"user_id": ada.User.ID, "to": to})
	}
	if r := place(bob.User.Extension); r.Status != 201 {
		t.Fatalf("the third call of the user: %d %s", r.Status, r.Body)
	}
	fixture.NextRinging(t, rings)
	if r := place(o.AddUser("Carol").Extension); r.JSON()["code"] != "concurrency_limit" || r.JSON()["limit"] != "calls_of_user" {
		t.Errorf("the fourth call of the user: %d %s", r.Status, r.Body)
	}
	if n, status := ringUntilRefused(t, bob, ada.User.Extension, rings, 10); n != 1 || status != "486" {
		t.Errorf("%d further calls of the organisation, then %s; want 1 and 486", n, status)
	}
	way := o.AddCarrier("", map[string]any{"emergency_capable": true})
	help := s.Sipp(rig.Script{Scenario: "answer", IP: way.IP, Port: way.Port})
	d := ada.Dial("911").WaitAnswered()
	fixture.LetCallRun(t, 300*time.Millisecond)
	d.HangUp()
	help.Wait()
	for _, name := range []string{"calls_of_device", "calls_of_user", "calls_of_organisation"} {
		if fixture.Metric(s, `soniq_limit_refusals_total{limit="`+name+`"}`) != 1 {
			t.Errorf("%s: the refusal is not counted once", name)
		}
	}
}
