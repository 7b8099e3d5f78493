package call

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestEarlyMedia_HeardBeforeAnswer(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	way := company.AddCarrier(user.ID, nil)
	low, ulaw := fixture.Tone(t, 440)
	carrier := s.Sipp(rig.Script{Scenario: "answer_early", IP: way.IP, Port: way.Port, Play: ulaw, Talk: 4 * time.Second})
	phone := s.Phone(user.SIP, rig.PhoneOptions{Say: low})
	phone.Do("dial", "+12125550142")
	phone.Wait("CALL_PROGRESS", "")
	phone.Listen(2 * time.Second)
	if live := company.LiveCall(nil); live["status"] != "ringing" || live["answered_at"] != nil {
		t.Errorf("two seconds of audio were heard, but the call is %v", live["status"])
	}
	phone.Wait("CALL_ESTABLISHED", "")
	phone.Do("hangup", "")
	carrier.Wait()
	if r := company.CDR("+12125550142"); r.String() != "outbound completed caller_hangup caller 0" || r.Ring < 2 {
		t.Errorf("record: %s after ringing for %d s", r, r.Ring)
	}
	fixture.Hears(t, "the caller", fixture.ReadWAV(t, phone.Close()).PCM[0], 440, 1500*time.Millisecond)
}

// After a 200 with sendrecv both sides hear each other, whatever direction an earlier 183 had. The carrier echoes, so
// the caller hears only if both directions work.
// https://github.com/baresip/baresip/issues/1511
// https://github.com/meetecho/janus-gateway/issues/936
func TestEarlyMedia_DirectionOfAnswerCounts(t *testing.T) {
	t.Parallel()
	for _, early := range []string{"sendonly", "recvonly", "inactive", "0.0.0.0"} {
		t.Run(early, func(t *testing.T) {
			t.Parallel()
			s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
			company := fixture.NewOrg(s)
			user := company.AddUser("Ada")
			way := company.AddCarrier(user.ID, nil)
			tone, _ := fixture.Tone(t, 440)
			carrier := s.Sipp(rig.Script{Scenario: "answer_early", IP: way.IP, Port: way.Port, Early: early, Echo: true,
				Talk: 500 * time.Millisecond})
			phone := s.Phone(user.SIP, rig.PhoneOptions{Say: tone})
			phone.Do("dial", "+12125550144")
			phone.Wait("CALL_ESTABLISHED", "")
			phone.Listen(3 * time.Second)
			phone.Do("hangup", "")
			carrier.Wait()
			fixture.Hears(t, "the caller", fixture.ReadWAV(t, phone.Close()).PCM[0], 440, 1500*time.Millisecond)
		})
	}
}

func TestForking_SecondAnswerReleased(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	way := company.AddCarrier(user.ID, nil)
	carrier := s.Sipp(rig.Script{Scenario: "answer_twice", IP: way.IP, Port: way.Port})
	s.Sipp(rig.Script{Scenario: "call", Login: &user.SIP, Number: "+12125550143", Talk: 1500 * time.Millisecond}).Wait()
	carrier.Wait()
	if r := company.CDR("+12125550143"); r.String() != "outbound completed caller_hangup caller 0" {
		t.Errorf("record: %s", r)
	}
}
