package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// helper is a carrier that reaches emergency services, and says a tone.
func (s *site) helper(x rig.Script) *rig.Sipp {
	s.T.Helper()
	way := s.carrier("", map[string]any{"emergency_capable": true})
	x.IP, x.Port = way.ip, way.port
	return s.Server.Sipp(x)
}

// Where recordings are announced, a call for help is recorded without a word.
func TestNothingIsAnnouncedInAnEmergencyCall(t *testing.T) {
	t.Parallel()
	o := announced(t, map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"})
	_, ulaw := tone(t, bobTone)
	help := o.helper(rig.Script{Scenario: "answer", Play: ulaw})
	ada := o.adaPhone.Mark()
	o.adaPhone.Dial("911")
	c := o.live(func(c map[string]any) bool { return c["recording"].(map[string]any)["state"] == "recording" })
	pcm := o.adaPhone.Since(ada, 3*time.Second)
	hears(t, "Ada", pcm, bobTone, time.Second)
	hearsNot(t, "Ada", pcm, recordedTone, 0)
	path := "/calls/" + c["id"].(string)
	if r := o.Do("POST", path+"/announce", map[string]any{"text": "hello"}); r.Status != 409 {
		t.Errorf("an announcement into an emergency call is answered %d %s", r.Status, r.Body)
	}
	o.adaPhone.Do("hangup", "")
	help.Wait()
	r := o.record("911")
	both := o.audio(o.recording(r.CallID).ID, "").PCM
	hears(t, "the left channel", both[0], adaTone, time.Second)
	hears(t, "the right channel", both[1], bobTone, time.Second)
	if kinds := o.kinds(path); slices.Contains(kinds, "recording.announced") || !slices.Contains(kinds, "recording.started") {
		t.Errorf("the timeline: %v", kinds)
	}
}

// Neither how long it rings nor that both keep silent ends a call for help.
func TestNothingOfOursEndsAnEmergencyCall(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet, Flags: []string{"--ring-time", "2s", "--media-timeout", "1s"}})
	company := newSite(s)
	user := company.AddUser("Ada")
	help := company.helper(rig.Script{Scenario: "answer", Ring: 4000})
	s.Sipp(rig.Script{Scenario: "call", Login: &user.SIP, Number: "911", Talk: 4 * time.Second}).Wait()
	help.Wait()
	if r := company.record("911"); r.String() != "outbound completed caller_hangup caller 0" {
		t.Errorf("record: %s", r)
	}
}

// A server that stops takes calls for help as long as it waits for others, and waits for them.
func TestAShutdownTakesEmergencyCalls(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet, Flags: []string{"--drain", "4s"}})
	company := newSite(s)
	user, other := company.AddUser("Ada"), company.AddUser("Bob")
	way := company.carrier(other.ID, nil)
	help := company.helper(rig.Script{Scenario: "answer"})
	callee := s.Sipp(rig.Script{Scenario: "answer", Port: company.sippPhone(other.SIP), From: other.SIP.Username})
	long := s.Sipp(rig.Script{Scenario: "call_until_bye", IP: way.ip, From: "+12125550177", Number: way.number})
	company.live(func(c map[string]any) bool { return c["status"] == "in_progress" })
	s.Terminate()
	rig.Until(t, "the server says that it is not ready", 5*time.Second, func() bool { return company.ready() == 503 })
	urgent := s.Sipp(rig.Script{Scenario: "call", Login: &user.SIP, Number: "911", Talk: 7 * time.Second})
	s.Sipp(rig.Script{Scenario: "call_refused", IP: way.ip, From: "+12125550178", Number: way.number, Status: 503}).Wait()
	long.Wait()
	callee.Wait()
	urgent.Wait()
	help.Wait()
	if r := afterwards(s, company); r.String() != "inbound completed shutdown system 0" {
		t.Errorf("the record of the other call: %s", r)
	}
	if r := company.record("911"); r.String() != "outbound completed caller_hangup caller 0" || r.Talk < 6 {
		t.Errorf("record: %s, %d s", r, r.Talk)
	}
}

// Who calls for help where none can be reached hears that they have to take another phone, and the phone is refused.
func TestWhoCannotCallForHelpIsTold(t *testing.T) {
	t.Parallel()
	o := announced(t, quiet)
	ada := o.adaPhone.Mark()
	o.adaPhone.Do("dial", "911")
	words := o.said(5 * time.Second)
	o.refusedForHelp()
	most := words[:len(words)*8/10]
	if alike, at := likeness(o.adaPhone.Since(ada, seconds(len(words)*9/10)), most); alike < 0.8 || at > time.Second {
		t.Errorf("Ada heard what is like the words by %.2f, at %s", alike, at)
	}
}

// Where nothing can speak, tones tell.
func TestWhoCannotCallForHelpHearsTones(t *testing.T) {
	t.Parallel()
	o := announced(t, map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"})
	ada := o.adaPhone.Mark()
	o.adaPhone.Do("dial", "112")
	o.refusedForHelp()
	pcm := o.adaPhone.Since(ada, 2500*time.Millisecond)
	for _, hz := range []float64{950, 1400, 1800} {
		if d := presence(pcm, hz); d < 300*time.Millisecond || d > 900*time.Millisecond {
			t.Errorf("Ada heard %.0f Hz for %s", hz, d)
		}
	}
}

// refusedForHelp waits for the refusal, and for the record.
func (o *office) refusedForHelp() {
	o.T.Helper()
	if e := o.adaPhone.Wait("CALL_CLOSED", ""); !strings.Contains(e.Param, "503") {
		o.T.Errorf("the call was closed with %q", e.Param)
	}
	if r := o.record(o.ada.Extension); r.String() != "outbound failed no_route system 503" || r.Total > 12 {
		o.T.Errorf("record: %s after %d s", r, r.Total)
	}
}

// A telephone that has said nothing of its media cannot be told, and tries another line at once.
func TestWhoCannotBeToldIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	company := newSite(s)
	user := company.AddUser("Ada")
	s.Sipp(rig.Script{Scenario: "call_refused", Login: &user.SIP, Number: "911", LateOffer: true, Status: 503}).Wait()
	if r := company.record("911"); r.String() != "outbound failed no_route system 503" || r.EndedAt.Sub(r.StartedAt) > 2*time.Second {
		t.Errorf("record: %s after %s", r, r.EndedAt.Sub(r.StartedAt))
	}
}
