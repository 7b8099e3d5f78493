package partner

import (
	"testing"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestSuspension_OrganisationModes(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	p := newPractice(t, s)
	p.callOut("+12125550141")
	p.callIn()

	p.do("suspend", map[string]any{"reason": "unpaid", "mode": "outbound_only"})
	p.callRefused("+12125550142", 403)
	p.callIn()
	p.callOut("911")
	if r := p.site.Do("POST", "/calls", map[string]any{"to": "+12125550149", "user_id": p.ada.ID}); r.Status != 403 || p.errorCode(r) != "org_suspended" {
		t.Errorf("a call by a program: %d %s", r.Status, r.Body)
	}
	p.do("resume", map[string]any{})

	answers := s.Sipp(rig.Script{Scenario: "answer", IP: p.way.IP, Port: p.way.Port})
	p.phone.Dial("+12125550143")
	p.do("suspend", map[string]any{"reason": "unpaid"})
	p.callRefused("+12125550144", 403)
	p.callRefused(p.ada.Extension, 403)
	s.Sipp(rig.Script{Scenario: "call_refused", IP: p.way.IP, From: "+12125550178", Number: p.way.Number, Status: 480}).Wait()
	s.Phone(p.bob.SIP, rig.PhoneOptions{Refused: true})
	if r := p.site.Do("GET", "/users", nil); r.Status != 403 || p.errorCode(r) != "org_suspended" {
		t.Errorf("the child's key: %d %s", r.Status, r.Body)
	}
	p.phone.Do("hangup", "") // the call went on until now
	answers.Wait()
	p.callOut("911")

	p.do("resume", map[string]any{})
	p.callOut("+12125550145")
	p.callIn()
	for number, want := range map[string]string{"+12125550143": "outbound completed caller_hangup caller 0", "+12125550144": "outbound failed blocked system 403",
		"+12125550178": "inbound missed blocked system 480"} {
		if r := p.site.CDR(number); r.String() != want {
			t.Errorf("the record of %s is %s, want %s", number, r, want)
		}
	}

	p.Want(202, "DELETE", "/partners/"+p.child+"?confirm=Harbor+Dental", nil, nil)
	p.callRefused("+12125550146", 403)
	p.callOut("911")
	p.do("resume", map[string]any{})
	p.callOut("+12125550147")
}

func TestSuspension_UserMayCallEmergency(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	p := newPractice(t, s)
	set := func(u rig.User, status string) {
		t.Helper()
		p.Want(200, "PATCH", "/partners/"+p.child+"/users/"+u.ID, map[string]any{"status": status}, nil)
	}
	set(p.bob, "suspended")
	p.callRefused("+12125550141", 403)
	p.callRefused(p.ada.Extension, 403)
	p.callOut("911")
	s.Phone(p.bob.SIP, rig.PhoneOptions{Refused: true})
	set(p.ada, "suspended")
	s.Sipp(rig.Script{Scenario: "call_refused", IP: p.way.IP, From: "+12125550178", Number: p.way.Number, Status: 480}).Wait()
	set(p.bob, "active")
	p.callOut("+12125550142")
}
