package network

import (
	"math"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// badNetwork loses and delays packets as a mobile network does.
var badNetwork = rig.Damage{Loss: 0.05, Jitter: 40 * time.Millisecond, Seed: 7}

// callerText is the caller's text on a bad network and on a good one.
const callerText = "My wallet was stolen on the train. Please block my credit card. I was charged twice for the same invoice. " +
	"Both payments went out on the third of March, forty nine dollars each. Please send me a confirmation by email. " +
	"How long does it take? Should I go to the police?"

func TestBadNetwork_QualityFiguresAndTranscript(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 60*time.Second, "a whole call is spoken")
	s := rig.Shared(t, rig.Options{})
	company := fixture.NewOrg(s)
	words := append(make([]int16, fixture.SilenceBefore), fixture.Synthesize(t, "rms", callerText)...)
	network := s.BadNetwork(badNetwork)
	calls := []struct {
		name    string
		through *rig.BadNetwork
		wrong   float64 // share of the words
		record  fixture.CDR
	}{{name: "good"}, {name: "bad", through: network}}
	t.Run("spoken", func(t *testing.T) {
		for i := range calls {
			c := &calls[i]
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				own := company.In(t)
				c.record = callWithSpeech(own, c.name, words, c.through)
				heard := own.Transcript(c.record)["caller"]
				wrong, of := fixture.WordErrors(callerText, heard)
				c.wrong = float64(wrong) / float64(of)
				t.Logf("on the %s network %d of %d words are wrong: %s", c.name, wrong, of, heard)
			})
		}
	})
	if t.Failed() {
		return
	}
	if worse := calls[1].wrong - calls[0].wrong; worse > maxExtraErrors {
		t.Errorf("%.0f %% more words are wrong on the bad network, at most %.0f %% may be", 100*worse, 100*maxExtraErrors)
	}
	up, down := network.Tolls()
	damaged, intact := company.LegQualities(calls[1].record.CallID), company.LegQualities(calls[0].record.CallID)
	wantQuality(t, "what came from the caller", damaged[0].Received, up, intact[0].Received.JitterMax)
	wantQuality(t, "what the caller's telephone tells of what it got", damaged[0].Sent, down, intact[0].Received.JitterMax)
	for who, d := range map[string]*fixture.StreamQuality{"the other side of it": damaged[1].Received, "the good network": intact[0].Received} {
		if d.LossRate > 0.5 || d.MOS < 4.2 || d.MOS < damaged[0].Received.MOS+0.3 {
			t.Errorf("%s: %+v, beside the bad network's %+v", who, *d, *damaged[0].Received)
		}
	}
}

// maxExtraErrors limits the share of words that the network may make wrong.
const maxExtraErrors = 0.3

// wantQuality compares figures with the packets lost by the network. RTCP reports come every few seconds and leave
// out the end of the call. A busy machine adds jitter on the good network too; busy is the allowance for it in ms.
func wantQuality(t *testing.T, what string, d *fixture.StreamQuality, toll rig.Toll, busy float64) {
	t.Helper()
	if d == nil {
		t.Errorf("%s: nothing is known", what)
		return
	}
	t.Logf("%s: %+v; the network %+v", what, *d, toll)
	if share := 100 * float64(toll.Lost) / float64(toll.Lost+toll.Passed); math.Abs(d.LossRate-share) > 1.5 {
		t.Errorf("%s: %.1f %% is said to be lost of %.1f %% that were", what, d.LossRate, share)
	}
	if d.Jitter < 7 || d.Jitter > 20+busy || d.JitterMax < d.Jitter { // 13.3 ms of delays between 0 and 40
		t.Errorf("%s: jitter is said to be %.1f ms, at most %.1f", what, d.Jitter, d.JitterMax)
	}
	if d.MOS > 4.1 || d.MOS < 2.5 {
		t.Errorf("%s: MOS is said to be %.2f", what, d.MOS)
	}
}

// callWithSpeech makes one telephone speak to another. It returns the record when the transcript is there.
func callWithSpeech(s *fixture.Org, name string, words []int16, through *rig.BadNetwork) fixture.CDR {
	s.T.Helper()
	ada, bob := s.AddUser("Ada-"+name), s.AddUser("Bob-"+name)
	speech, _ := fixture.WriteAudio(s.T, "speech", append(words, make([]int16, 60*8000)...))
	hum, _ := fixture.Tone(s.T, 440)
	caller := s.Server.Phone(ada.SIP, rig.PhoneOptions{Say: speech, Through: through})
	callee := s.Server.Phone(bob.SIP, rig.PhoneOptions{Say: hum, Auto: true})
	caller.Dial(bob.Extension)
	callee.Listen(fixture.SampleDuration(len(words)))
	caller.Do("hangup", "")
	callee.Wait("CALL_CLOSED", "")
	id := s.CDR(ada.Extension).CallID
	s.Webhook.Wait("call.transcription", 3*time.Minute, func(e rig.Event) bool { return e.Data["call_id"] == id })
	return s.CDR(ada.Extension)
}

// A called phone with another codec hears a caller on a bad network without gaps: the jitter buffer waits for late
// packets, and lost packets are concealed.
func TestBadNetwork_TranscodedAudioContinuous(t *testing.T) {
	t.Parallel()
	const tone = 700 // baresip resamples the file from 8 to 16 kHz for G.722, and 2200 Hz is not heard then
	for name, codec := range map[string]string{"Opus": "opus/48000/2", "G.722": "G722/16000"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
			o := &fixture.Office{Org: fixture.NewOrg(s)}
			o.Ada, o.Bob = o.AddUser("Ada"), o.AddUser("Bob")
			network := s.BadNetwork(badNetwork)
			caller := o.Phone(o.Ada, tone, rig.PhoneOptions{Codecs: codec, Through: network})
			callee := o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
			caller.Dial(o.Bob.Extension)
			callee.Since(callee.Mark(), time.Second)
			before, _ := network.Tolls()
			pcm := callee.Since(callee.Mark(), 8*time.Second)
			up, _ := network.Tolls()
			paused := up.Paused - before.Paused
			if up.Lost < 10 {
				t.Errorf("the network lost %d packets of %d", up.Lost, up.Passed)
			}
			clean, holes := continuity(pcm, tone)
			t.Logf("%s in %s: %.1f %% of the time clean, holes of %s in all; the phone paused for %s", fixture.SampleDuration(len(pcm)), name,
				100*clean, holes, paused)
			if clean < 0.9 || holes > 80*time.Millisecond+paused {
				t.Errorf("Bob heard the tone for %.1f %% of the time, with holes of %s", 100*clean, holes)
			}
		})
	}
}

// continuity returns the share of the audio that holds a tone, and the length of its gaps.
func continuity(pcm []int16, hz float64) (share float64, holes time.Duration) {
	parts := len(pcm) / 800
	share = float64(fixture.ToneDuration(pcm, hz)/(100*time.Millisecond)) / float64(parts)
	for i := 0; i+80 <= len(pcm); i += 80 {
		if fixture.Loudness(pcm[i:i+80]) < -35 {
			holes += 10 * time.Millisecond
		}
	}
	return share, holes
}
