package attack

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
	"soniq/internal/protocol/media/dsp"
)

// TestSRTP_ReplayIsNotHeard sends captured SRTP packets again from the phone's address, while its own packets are dropped. The
// other phone hears neither packets of an earlier index nor the last ones, and the call continues.
func TestSRTP_ReplayIsNotHeard(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech})
	o := fixture.NewOrg(s)
	ada, bob := o.AddUser("Ada"), o.AddUser("Bob")
	voice := append(dsp.Tone(2300, -6, 2*time.Second, 8000), dsp.Tone(440, -6, time.Minute, 8000)...)
	say, _ := fixture.WriteAudio(t, "secret", voice)
	network := s.BadNetwork(rig.Damage{})
	caller := s.Phone(ada.SIP, rig.PhoneOptions{Say: say, Encrypt: "srtp-mand", Through: network})
	callee := o.Phone(bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
	caller.Dial(bob.Extension)
	callee.Listen(7 * time.Second) // longer than the window of indexes that are remembered
	network.Replay(0, 90)
	callee.Listen(8 * time.Second)
	up, _ := network.Tolls()
	network.Replay(up.Passed-40, up.Passed)
	callee.Listen(10 * time.Second)
	caller.Do("hangup", "")
	callee.Wait("CALL_CLOSED", "")
	both := o.RecordingAudio(o.Recording(o.CDR(ada.Extension).CallID).ID, "").PCM
	heard := fixture.ReadWAV(t, callee.Close()).PCM[0]
	for who, pcm := range map[string][]int16{"Bob": heard, "the recording": both[0]} {
		fixture.HearsNot(t, who, pcm, 2300, 2200*time.Millisecond)
		fixture.Hears(t, who, pcm, 440, 5*time.Second)
	}
}
