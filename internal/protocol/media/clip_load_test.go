package media

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func middleTone(t *testing.T, c *Clip) (hz, db float64) {
	t.Helper()
	if len(c.pcm) < 8000 {
		t.Fatalf("%v of sound", c.Duration())
	}
	return DominantFrequency(c.pcm[len(c.pcm)/2-2000:][:4000], clipRate)
}

func TestLoadClip_WAVRatesAndEncodings(t *testing.T) {
	t.Parallel()
	for _, rate := range []int{8000, 11025, 16000, 22050, 32000, 44100, 48000} {
		for _, enc := range []Encoding{PCM16, ULaw, ALaw} {
			left := Tone(600, -10, time.Second, rate)
			path := filepath.Join(t.TempDir(), fmt.Sprintf("%d.wav", rate))
			if err := WriteWAV(path, WAV{rate, [][]int16{left, left}}, enc); err != nil {
				t.Fatal(err)
			}
			c, err := LoadClip(path)
			if err != nil {
				t.Fatal(err)
			}
			if hz, db := middleTone(t, c); !nearHz(hz, 600) || math.Abs(db+10) > 0.6 || math.Abs(c.Duration().Seconds()-1) > 0.02 {
				t.Errorf("%d Hz %v: %.0f Hz at %.1f dBFS, %v", rate, enc, hz, db, c.Duration())
			}
		}
	}
}

// The files were made by ffmpeg and opusenc: a second of 600 Hz at -10 dBFS.
func TestLoadClip_MP3AndOgg(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"tone.mp3", "tone.ogg", "stereo.ogg"} {
		c, err := LoadClip(filepath.Join("testdata", name))
		if err != nil {
			t.Error(name, err)
			continue
		}
		if hz, db := middleTone(t, c); !nearHz(hz, 600) || math.Abs(db+10) > 1 || math.Abs(c.Duration().Seconds()-1) > 0.1 {
			t.Errorf("%s: %.0f Hz at %.1f dBFS, %v", name, hz, db, c.Duration())
		}
	}
}

func TestLoadClip_InvalidFileRefused(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile("testdata/tone.ogg")
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"empty": nil, "text": []byte("hello, this is no sound"), "RIFF": []byte("RIFF    WAVEfmt "),
		"a tag that claims 256 MB": []byte("ID3\x04\x00\x00\x7f\x7f\x7f\x7f\xff\xfb\x90\x64"),
		"MP3 of nothing":           {0xFF, 0xFB, 0x90, 0x64, 0, 0}, "Ogg of nothing": []byte("OggS"), "cut Ogg": whole[:60]} {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := LoadClip(path); err == nil {
			t.Errorf("%s: a clip of %v", name, c.Duration())
		}
	}
	if _, err := LoadClip("testdata/none"); !os.IsNotExist(unwrapped(err)) {
		t.Errorf("no file: %v", err)
	}
}

func unwrapped(err error) error {
	for {
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		if e, ok := err.(*os.PathError); ok {
			return e
		}
		err = u.Unwrap()
	}
}

func FuzzClip(f *testing.F) {
	for _, name := range []string{"tone.mp3", "tone.ogg"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:min(len(b), 2000)])
	}
	f.Fuzz(func(t *testing.T, b []byte) { _, _, _ = decodeClip(b) })
}

func TestRingback_ByCountry(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		country string
		hz      float64
		period  time.Duration
		on      float64 // s, from the beginning
	}{{"us", 440, 6 * time.Second, 2}, {"GB", 400, 3 * time.Second, 0.4}, {"DE", 425, 5 * time.Second, 1}, {"FR", 440, 5 * time.Second, 1.5}, {"XX", 425, 5 * time.Second, 1}} {
		clip := Ringback(c.country)
		on := int(c.on * clipRate)
		hz, _ := DominantFrequency(clip.pcm[:on], clipRate)
		if beating := c.country == "us" || c.country == "GB"; clip.Duration() != c.period || math.Abs(hz-c.hz) > 3 && !(beating && math.Abs(hz-c.hz-45) < 10) {
			t.Errorf("%s: %.0f Hz, %v", c.country, hz, clip.Duration())
		}
		if isSilent(clip.pcm[:on]) || !isSilent(clip.pcm[on:on+3000]) {
			t.Errorf("%s: not %v on", c.country, c.on)
		}
	}
}

// The music has a suitable level throughout, without clipping or a click at the seam.
func TestHoldMusic_LevelAndSeam(t *testing.T) {
	t.Parallel()
	pcm := HoldMusic().pcm
	if d := HoldMusic().Duration(); d < 15*time.Second {
		t.Errorf("repeats after %v", d)
	}
	for i := 0; i+clipRate <= len(pcm); i += clipRate {
		var sum float64
		for _, v := range pcm[i : i+clipRate] {
			sum += float64(v) * float64(v)
		}
		if db := 10 * math.Log10(sum/clipRate/32767/32767); db < -32 || db > -12 {
			t.Errorf("second %d is at %.1f dBFS", i/clipRate, db)
		}
	}
	step := 0
	for i := range pcm {
		step = max(step, int(math.Abs(float64(int(pcm[(i+1)%len(pcm)])-int(pcm[i])))))
	}
	if seam := int(math.Abs(float64(int(pcm[0]) - int(pcm[len(pcm)-1])))); seam > step || step > 6000 {
		t.Errorf("steps of %d, %d at the seam", step, seam)
	}
}
