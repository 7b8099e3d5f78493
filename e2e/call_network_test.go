package e2e

import (
	"math"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// bad is a network as mobile ones are on a bad day.
var bad = rig.Damage{Loss: 0.05, Jitter: 40 * time.Millisecond, Seed: 7}

// heardWay is how one direction of a leg sounded, as the API gives it.
type heardWay struct {
	MOS       float64 `json:"mos_average"`
	Packets   int
	Lost      int
	LossRate  float64 `json:"loss_rate"`
	Jitter    float64 `json:"jitter_ms_average"`
	JitterMax float64 `json:"jitter_ms_max"`
}

// legQuality is both directions of a leg: what we received from it, and what it says it received.
type legQuality struct{ Received, Sent *heardWay }

// sounded are the legs of a call, the caller's first.
func (s *site) sounded(callID string) []legQuality {
	s.T.Helper()
	var report struct{ Legs []legQuality }
	s.Want(200, "GET", "/calls/"+callID+"/quality", nil, &report)
	if len(report.Legs) != 2 || report.Legs[0].Received == nil || report.Legs[1].Received == nil {
		s.T.Fatalf("quality of %s: %+v", callID, report)
	}
	return report.Legs
}

// monologue is what the caller speaks on a bad network and on a good one.
const monologue = "My wallet was stolen on the train. Please block my credit card. I was charged twice for the same invoice. " +
	"Both payments went out on the third of March, forty nine dollars each. Please send me a confirmation by email. " +
	"How long does it take? Should I go to the police?"

func TestABadNetworkIsMeasuredAndWordsGetThrough(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{})
	company := newSite(s)
	words := append(make([]int16, before), say(t, "rms", monologue)...)
	network := s.BadNetwork(bad)
	calls := []struct {
		name    string
		through *rig.BadNetwork
		wrong   float64 // share of the words
		record  cdr
	}{{name: "good"}, {name: "bad", through: network}}
	t.Run("spoken", func(t *testing.T) {
		for i := range calls {
			c := &calls[i]
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				own := company.in(t)
				c.record = own.speaks(c.name, words, c.through)
				heard := own.transcript(c.record)["caller"]
				wrong, of := wordErrors(monologue, heard)
				c.wrong = float64(wrong) / float64(of)
				t.Logf("on the %s network %d of %d words are wrong: %s", c.name, wrong, of, heard)
			})
		}
	})
	if t.Failed() {
		return
	}
	if worse := calls[1].wrong - calls[0].wrong; worse > mostWorse {
		t.Errorf("%.0f %% more words are wrong on the bad network, at most %.0f %% may be", 100*worse, 100*mostWorse)
	}
	up, down := network.Tolls()
	damaged, intact := company.sounded(calls[1].record.CallID), company.sounded(calls[0].record.CallID)
	suffered(t, "what came from the caller", damaged[0].Received, up, intact[0].Received.JitterMax)
	suffered(t, "what the caller's telephone tells of what it got", damaged[0].Sent, down, intact[0].Received.JitterMax)
	for who, d := range map[string]*heardWay{"the other side of it": damaged[1].Received, "the good network": intact[0].Received} {
		if d.LossRate > 0.5 || d.MOS < 4.2 || d.MOS < damaged[0].Received.MOS+0.3 {
			t.Errorf("%s: %+v, beside the bad network's %+v", who, *d, *damaged[0].Received)
		}
	}
}

// mostWorse is how many more of the words may be wrong because of the network.
const mostWorse = 0.3

// suffered checks figures against what the network did. Reports by RTCP come every few seconds and leave out the end of the call.
// A busy machine adds to the jitter, on the good network too: so much, in ms, is allowed for.
func suffered(t *testing.T, what string, d *heardWay, toll rig.Toll, busy float64) {
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

// speaks has one telephone speak to another, and returns the record of the call when its words are known.
func (s *site) speaks(name string, words []int16, through *rig.BadNetwork) cdr {
	s.T.Helper()
	ada, bob := s.AddUser("Ada-"+name), s.AddUser("Bob-"+name)
	speech, _ := spoken(s.T, "speech", append(words, make([]int16, 60*8000)...))
	hum, _ := tone(s.T, adaTone)
	caller := s.Server.Phone(ada.SIP, rig.PhoneOptions{Say: speech, Through: through})
	callee := s.Server.Phone(bob.SIP, rig.PhoneOptions{Say: hum, Auto: true})
	caller.Dial(bob.Extension)
	callee.Listen(seconds(len(words)))
	caller.Do("hangup", "")
	callee.Wait("CALL_CLOSED", "")
	id := s.record(ada.Extension).CallID
	s.hooks.Wait("call.transcription", 3*time.Minute, func(e rig.Event) bool { return e.Data["call_id"] == id })
	return s.record(ada.Extension)
}

// Whoever is called from a bad network by another codec hears it without holes: late packets are waited for, lost ones concealed.
func TestABadNetworkIsNotHeardOnTheOtherSide(t *testing.T) {
	t.Parallel()
	for name, codec := range map[string]string{"Opus": "opus/48000/2", "G.722": "G722/16000"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := rig.Start(t, rig.Options{Env: quiet})
			o := &office{site: newSite(s)}
			o.ada, o.bob = o.AddUser("Ada"), o.AddUser("Bob")
			network := s.BadNetwork(bad)
			caller := o.phone(o.ada, adaTone, rig.PhoneOptions{Codecs: codec, Through: network})
			callee := o.phone(o.bob, bobTone, rig.PhoneOptions{Auto: true})
			caller.Dial(o.bob.Extension)
			callee.Since(callee.Mark(), time.Second)
			pcm := callee.Since(callee.Mark(), 8*time.Second)
			up, _ := network.Tolls()
			if up.Lost < 10 {
				t.Errorf("the network lost %d packets of %d", up.Lost, up.Passed)
			}
			clean, holes := continuity(pcm, adaTone)
			t.Logf("%s in %s: %.1f %% of the time clean, holes of %s in all", seconds(len(pcm)), name, 100*clean, holes)
			if clean < 0.9 || holes > 80*time.Millisecond {
				t.Errorf("Bob heard the tone for %.1f %% of the time, with holes of %s", 100*clean, holes)
			}
		})
	}
}

// continuity is in how much of the audio a tone is heard, by tenths of a second, and how long it is silent, by 10 ms.
func continuity(pcm []int16, hz float64) (share float64, holes time.Duration) {
	parts := len(pcm) / 800
	share = float64(presence(pcm, hz)/(100*time.Millisecond)) / float64(parts)
	for i := 0; i+80 <= len(pcm); i += 80 {
		if loudness(pcm[i:i+80]) < -35 {
			holes += 10 * time.Millisecond
		}
	}
	return share, holes
}

// loudness is the power of audio in dB below the loudest sine.
func loudness(pcm []int16) float64 {
	var sum float64
	for _, v := range pcm {
		sum += float64(v) * float64(v)
	}
	return 10 * math.Log10(max(2*sum/float64(len(pcm))/(32767*32767), 1e-10))
}
