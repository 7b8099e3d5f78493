package e2e

import (
	"math"
	"os"
	"testing"
	"time"

	"soniq/media"
)

// spoken writes 8 kHz audio as telephones take it: a WAV file, and raw mu-law for sipp.
func spoken(t testing.TB, name string, pcm []int16) (wav, ulaw string) {
	t.Helper()
	wav, ulaw = temporary(t, name+".wav"), temporary(t, name+".ulaw")
	if err := writePCM(wav, pcm); err != nil {
		t.Fatal(err)
	}
	raw := make([]byte, len(pcm))
	media.EncodeULaw(raw, pcm)
	if err := os.WriteFile(ulaw, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return wav, ulaw
}

func writePCM(path string, pcm []int16) error {
	return media.WriteWAV(path, media.WAV{Rate: 8000, PCM: [][]int16{pcm}}, media.PCM16)
}

// read reads a WAV file.
func read(t testing.TB, path string) media.WAV {
	t.Helper()
	w, err := media.ReadWAV(path)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// hears fails unless the audio is, for at least the given time, a tone; the parts around it may be silent.
func hears(t testing.TB, who string, pcm []int16, hz float64, least time.Duration) {
	t.Helper()
	const part = 1600 // 200 ms
	heard := 0
	for i := 0; i+part <= len(pcm); i += part {
		if got, level := media.Dominant(pcm[i:i+part], 8000); math.Abs(got-hz) < 8 && level > -25 {
			heard++
		}
	}
	if d := time.Duration(heard) * 200 * time.Millisecond; d < least {
		whole, level := media.Dominant(pcm, 8000)
		t.Errorf("%s heard %.0f Hz for %s of %s, want at least %s; the strongest is %.0f Hz at %.0f dBFS",
			who, hz, d, seconds(len(pcm)), least, whole, level)
	}
}

// hearsNot fails when a tone is in the audio for more than the given time.
func hearsNot(t testing.TB, who string, pcm []int16, hz float64, most time.Duration) {
	t.Helper()
	if d := presence(pcm, hz); d > most {
		t.Errorf("%s heard %.0f Hz for %s, want at most %s", who, hz, d, most)
	}
}

// presence is how long a tone is in the audio, beside others or not.
func presence(pcm []int16, hz float64) time.Duration {
	const part = 800 // 100 ms
	parts := 0
	for i := 0; i+part <= len(pcm); i += part {
		if level(pcm[i:i+part], hz) > -30 {
			parts++
		}
	}
	return time.Duration(parts) * 100 * time.Millisecond
}

// level is the strength of one frequency in dBFS.
func level(pcm []int16, hz float64) float64 {
	var re, im float64
	for i, v := range pcm {
		s, c := math.Sincos(2 * math.Pi * hz * float64(i) / 8000)
		re, im = re+float64(v)*c, im+float64(v)*s
	}
	return 20 * math.Log10(max(2*math.Hypot(re, im)/float64(len(pcm))/32767, 1e-9))
}

func seconds(samples int) time.Duration { return time.Duration(samples) * time.Second / 8000 }
