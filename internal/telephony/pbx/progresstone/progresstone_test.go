package progresstone

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"soniq/internal/protocol/media/clip"
	"soniq/internal/protocol/media/dsp"
)

// measure feeds audio in frames of 20 ms, as a call does. Frames below the level of noise are quiet.
func measure(pcm []int16) (sound, tone time.Duration) {
	var d Detector
	add := func(s, t time.Duration) { sound, tone = sound+s, tone+t }
	for ; len(pcm) >= 160; pcm = pcm[160:] {
		sum := 0.0
		for _, v := range pcm[:160] {
			sum += float64(v) * float64(v)
		}
		if sum/160 > 250*250 {
			add(d.Feed(pcm[:160]))
		} else {
			add(d.Pause())
		}
	}
	add(d.Pause())
	return sound, tone
}

// cadence returns bursts of tones for 20 s, beginning with quiet of lead samples.
func cadence(lead int, on, off time.Duration, hz ...float64) []int16 {
	pcm := make([]int16, lead)
	for len(pcm) < 20*rate {
		burst := make([]int16, int(on.Seconds()*rate))
		for _, f := range hz {
			for i, v := range dsp.Tone(f, -18, on, rate)[:len(burst)] {
				burst[i] += v + int16(rand.IntN(60)-30)
			}
		}
		pcm = append(append(pcm, burst...), make([]int16, int(off.Seconds()*rate))...)
	}
	return pcm
}

// TestDetector_TonesAreNoSpeech proves that tones of the network, such as busy, count as no speech of a message.
//
// https://github.com/2600hz/kazoo/pull/2689
// https://github.com/fusionpbx/fusionpbx/issues/724
func TestDetector_TonesAreNoSpeech(t *testing.T) {
	t.Parallel()
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	for name, c := range map[string]struct {
		on, off time.Duration
		hz      []float64
	}{
		"busy, Europe": {ms(500), ms(500), []float64{425}}, "busy, Germany": {ms(480), ms(480), []float64{425}},
		"congestion, Europe": {ms(250), ms(250), []float64{425}}, "ringing, Europe": {ms(1000), ms(4000), []float64{425}},
		"dial tone, Europe": {ms(20000), 0, []float64{425}}, "busy, off by 3 Hz": {ms(500), ms(500), []float64{428}},
		"busy, North America": {ms(500), ms(500), []float64{480, 620}}, "reorder, North America": {ms(250), ms(250), []float64{480, 620}},
		"ringing, North America": {ms(2000), ms(4000), []float64{440, 480}}, "dial tone, North America": {ms(20000), 0, []float64{350, 440}},
		"busy, United Kingdom": {ms(375), ms(375), []float64{400}}, "ringing, United Kingdom": {ms(400), ms(200), []float64{400, 450}},
		"busy, China": {ms(350), ms(350), []float64{450}},
	} {
		for _, lead := range []int{0, 37, 111, 160, 333} {
			sound, tone := measure(cadence(lead, c.on, c.off, c.hz...))
			if sound > ms(400) || tone < 3*time.Second {
				t.Errorf("%s, %d samples late: %v counts as speech, %v as a tone", name, lead, sound, tone)
			}
		}
	}
}

func TestDetector_SpeechAndOtherTones(t *testing.T) {
	t.Parallel()
	lines, err := filepath.Glob("../../../sandbox/softphone/lines/*.wav")
	if err != nil {
		t.Fatal(err)
	}
	var all, tones time.Duration
	for _, path := range lines {
		c, err := clip.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		sound, tone := measure(c.PCM())
		all, tones = all+sound, tones+tone
	}
	if all < 10*time.Second || tones > all/50 {
		t.Errorf("%v of speech, %v of it taken for tones", all, tones)
	}
	for _, hz := range []float64{200, 440, 480, 620, 700, 1000, 2200} {
		if sound, tone := measure(dsp.Tone(hz, -18, 3*time.Second, rate)); tone > 0 || sound < 2900*time.Millisecond {
			t.Errorf("of a sound of %v Hz %v are taken for a tone", hz, tone)
		}
	}
}
