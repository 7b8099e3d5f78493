package emergency

import (
	"slices"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// addEmergencyCarrier adds a carrier that reaches emergency services, and answers with a tone.
func addEmergencyCarrier(s *fixture.Org, x rig.Script) *rig.Sipp {
	s.T.Helper()
	way := s.AddCarrier("", map[string]any{"emergency_capable": true})
	x.IP, x.Port = way.IP, way.Port
	return s.Server.Sipp(x)
}

// An emergency call is recorded without an announcement, even if recordings are announced.
func TestEmergency_NoRecordingAnnouncement(t *testing.T) {
	t.Parallel()
	o := fixture.NewOfficeWithAnnouncement(t, map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"})
	_, ulaw := fixture.Tone(t, fixture.BobTone)
	help := addEmergencyCarrier(o.Org, rig.Script{Scenario: "answer", Play: ulaw})
	ada := o.AdaPhone.Mark()
	o.AdaPhone.Dial("911")
	c := o.LiveCall(func(c map[string]any) bool { return c["recording"].(map[string]any)["state"] == "recording" })
	pcm := o.AdaPhone.Since(ada, 3*time.Second)
	fixture.Hears(t, "Ada", pcm, fixture.BobTone, time.Second)
	fixture.HearsNot(t, "Ada", pcm, fixture.AnnouncementTone, 0)
	path := "/calls/" + c["id"].(string)
	if r := o.Do("POST", path+"/announce", map[string]any{"text": "hello"}); r.Status != 409 {
		t.Errorf("an announcement into an emergency call is answered %d %s", r.Status, r.Body)
	}
	o.AdaPhone.Do("hangup", "")
	help.Wait()
	r := o.CDR("911")
	both := o.RecordingAudio(o.Recording(r.CallID).ID, "").PCM
	fixture.Hears(t, "the left channel", both[0], fixture.AdaTone, time.Second)
	fixture.Hears(t, "the right channel", both[1], fixture.BobTone, time.Second)
	if kinds := o.TimelineSteps(path); slices.Contains(kinds, "recording.announced") || !slices.Contains(kinds, "recording.started") {
		t.Errorf("the timeline: %v", kinds)
	}
}

// Neither the ring time-out nor the media time-out ends an emergency call.
func TestEmergency_NoRingOrMediaTimeout(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--ring-time", "2s", "--media-timeout", "1s"}})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	help := addEmergencyCarrier(company, rig.Script{Scenario: "answer", Ring: 4000})
	s.Sipp(rig.Script{Scenario: "call", Login: &user.SIP, Number: "911", Talk: 4 * time.Second}).Wait()
	help.Wait()
	if r := company.CDR("911"); r.String() != "outbound completed caller_hangup caller 0" {
		t.Errorf("record: %s", r)
	}
}

// A server that shuts down accepts emergency calls while it waits for other calls to end, and waits for the emergency
// calls too.
func TestEmergency_DuringDrain(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--drain", "4s"}})
	company := fixture.NewOrg(s)
	user, other := company.AddUser("Ada"), company.AddUser("Bob")
	way := company.AddCarrier(other.ID, nil)
	help := addEmergencyCarrier(company, rig.Script{Scenario: "answer"})
	callee := s.Sipp(rig.Script{Scenario: "answer", Port: company.RegisterSipp(other.SIP), From: other.SIP.Username})
	long := s.Sipp(rig.Script{Scenario: "call_until_bye", IP: way.IP, From: "+12125550177", Number: way.Number})
	company.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })
	s.Terminate()
	rig.Until(t, "the server says that it is not ready", 5*time.Second, func() bool { return company.ReadyStatus() == 503 })
	urgent := s.Sipp(rig.Script{Scenario: "call", Login: &user.SIP, Number: "911", Talk: 7 * time.Second})
	s.Sipp(rig.Script{Scenario: "call_refused", IP: way.IP, From: "+12125550178", Number: way.Number, Status: 503}).Wait()
	long.Wait()
	callee.Wait()
	urgent.Wait()
	help.Wait()
	if r := fixture.CDRAfterRestart(s, company); r.String() != "inbound completed shutdown system 0" {
		t.Errorf("the record of the other call: %s", r)
	}
	if r := company.CDR("911"); r.String() != "outbound completed caller_hangup caller 0" || r.Talk < 6 {
		t.Errorf("record: %s, %d s", r, r.Talk)
	}
}
