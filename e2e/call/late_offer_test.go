package call

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestLateOffer_AudioBothWays(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	way := company.AddCarrier(user.ID, nil)
	low, _ := fixture.Tone(t, 440)
	_, high := fixture.Tone(t, 1000)
	phone := s.Phone(user.SIP, rig.PhoneOptions{Say: low, Auto: true})
	s.Sipp(rig.Script{Scenario: "call", LateOffer: true, IP: way.IP, From: "+12125550177", Number: way.Number, Play: high,
		Talk: 3 * time.Second}).Wait()
	phone.Wait("CALL_CLOSED", "")
	r := company.CDR("+12125550177")
	both := company.RecordingAudio(company.Recording(r.CallID).ID, "").PCM
	fixture.Hears(t, "the left channel", both[0], 1000, 2*time.Second)
	fixture.Hears(t, "the right channel", both[1], 440, 2*time.Second)
	fixture.Hears(t, "the phone", fixture.ReadWAV(t, phone.Close()).PCM[0], 1000, 2*time.Second)
}
