package e2e

import (
	"testing"
	"time"

	"soniq/e2e/rig"
	"soniq/media"
)

// Phones that share no codec hear each other, their digits pass, and both are recorded.
func TestPhonesWithoutACommonCodecTalk(t *testing.T) {
	t.Parallel()
	for name, codecs := range map[string][2]string{
		"Opus and A-law": {"opus/48000/2", "PCMA/8000"}, "G.722 and Opus": {"G722/16000", "opus/48000/2"}, "µ-law and G.722": {"PCMU/8000", "G722/16000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := rig.Start(t, rig.Options{Env: quiet})
			office := newSite(s)
			ada, bob := office.AddUser("Ada"), office.AddUser("Bob")
			low, _ := tone(t, 440)
			high, _ := tone(t, 1000)
			caller := s.Phone(ada.SIP, rig.PhoneOptions{Say: low, Codecs: codecs[0]})
			callee := s.Phone(bob.SIP, rig.PhoneOptions{Say: high, Codecs: codecs[1]})
			caller.Do("dial", bob.Extension)
			callee.Wait("CALL_INCOMING", "")
			callee.Do("accept", "")
			caller.Wait("CALL_ESTABLISHED", "")
			caller.Listen(time.Second * wider[codecs[0]])
			callee.Listen(time.Second * wider[codecs[1]])
			caller.Do("sndcode", "5")
			callee.Wait("CALL_DTMF_START", "5")
			callee.Listen(4 * time.Second * wider[codecs[1]]) // it counts at 8 kHz, one channel
			caller.Do("hangup", "")
			callee.Wait("CALL_CLOSED", "")
			both := office.audio(office.recording(office.record(ada.Extension).CallID).ID, "")
			heard(t, "Ada", read(t, caller.Close()), 0, 1000)
			heard(t, "Bob", read(t, callee.Close()), 0, 440)
			heard(t, "the left channel", both, 0, 440)
			heard(t, "the right channel", both, 1, 1000)
		})
	}
}

// wider is how much more a phone writes down in a second of a codec than of G.711.
var wider = map[string]time.Duration{"PCMU/8000": 1, "PCMA/8000": 1, "G722/16000": 2, "opus/48000/2": 12}

// heard fails unless a channel, at any rate, holds a tone for two seconds.
func heard(t *testing.T, who string, w media.WAV, channel int, hz float64) {
	t.Helper()
	pcm := narrow(media.WAV{Rate: w.Rate, PCM: [][]int16{w.PCM[channel]}})
	if d := presence(pcm, hz); d < 2*time.Second {
		t.Errorf("%s, at %d Hz, heard %.0f Hz for %s", who, w.Rate, hz, d)
	}
}

// narrow is the first channel at 8 kHz; what is listened for is far below 4 kHz.
func narrow(w media.WAV) []int16 {
	step := w.Rate / 8000
	thin := make([]int16, 0, len(w.PCM[0])/step+1)
	for i := 0; i < len(w.PCM[0]); i += step {
		thin = append(thin, w.PCM[0][i])
	}
	return thin
}
