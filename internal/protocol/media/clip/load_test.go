package clip

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"soniq/internal/protocol/media/dsp"
	"soniq/internal/protocol/media/mediatest"
	"soniq/internal/protocol/media/wav"
)

func middleTone(t *testing.T, c *Clip) (hz, db float64) {
	t.Helper()
	if c.Len() < 8000 {
		t.Fatalf("%v of sound", c.Duration())
	}
	return dsp.DominantFrequency(c.PCM()[c.Len()/2-2000:][:4000], Rate)
}

func TestLoadClip_WAVRatesAndEncodings(t *testing.T) {
	t.Parallel()
	for _, rate := range []int{8000, 11025, 16000, 22050, 32000, 44100, 48000} {
		for _, enc := range []wav.Encoding{wav.PCM16, wav.ULaw, wav.ALaw} {
			left := dsp.Tone(600, -10, time.Second, rate)
			path := filepath.Join(t.TempDir(), fmt.Sprintf("%d.wav", rate))
			if err := wav.Write(path, wav.Audio{Rate: rate, PCM: [][]int16{left, left}}, enc); err != nil {
				t.Fatal(err)
			}
			c, err := Load(path)
			if err != nil {
				t.Fatal(err)
			}
			if hz, db := middleTone(t, c); !mediatest.NearHz(hz, 600) || math.Abs(db+10) > 0.6 ||
				math.Abs(c.Duration().Seconds()-1) > 0.02 {
				t.Errorf("%d Hz %v: %.0f Hz at %.1f dBFS, %v", rate, enc, hz, db, c.Duration())
			}
		}
	}
}

// The files were made by ffmpeg and opusenc: a second of 600 Hz at -10 dBFS.
func TestLoadClip_MP3AndOgg(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"tone.mp3", "tone.ogg", "stereo.ogg"} {
		c, err := Load(filepath.Join("testdata", name))
		if err != nil {
			t.Error(name, err)
			continue
		}
		if hz, db := middleTone(t, c); !mediatest.NearHz(hz, 600) || math.Abs(db+10) > 1 || math.Abs(c.Duration().Seconds()-1) > 0.1 {
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
		if c, err := Load(path); err == nil {
			t.Errorf("%s: a clip of %v", name, c.Duration())
		}
	}
	if _, err := Load("testdata/none"); !os.IsNotExist(unwrapped(err)) {
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
	for _, b := range uploads(f) {
		f.Add(b)
	}
	path := filepath.Join(f.TempDir(), "upload")
	f.Fuzz(func(t *testing.T, b []byte) { wantCheapUpload(t, path, b) })
}

// uploads returns files of each format, and files whose headers claim much.
func uploads(t testing.TB) (all [][]byte) {
	for _, name := range []string{"tone.mp3", "tone.ogg", "stereo.ogg"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b[:min(len(b), 2000)])
	}
	for _, rate := range []int{8000, 8001, 11025, 44100, 47999, 48000} {
		path := filepath.Join(t.TempDir(), "x.wav")
		tone := dsp.Tone(600, -10, 100*time.Millisecond, rate)
		if err := wav.Write(path, wav.Audio{Rate: rate, PCM: [][]int16{tone, tone}}, wav.PCM16); err != nil {
			t.Fatal(err)
		}
		b, _ := os.ReadFile(path)
		all = append(all, b)
		claims := bytes.Clone(b)
		copy(claims[4:], "\xff\xff\xff\xff")
		copy(claims[40:], "\xf0\xff\xff\xff")
		all = append(all, claims)
	}
	return append(all, silentMP3(20*time.Second), silentOgg(1), append([]byte("ID3\x04\x00\x00\x00\x00\x00\x0a0123456789"),
		silentMP3(time.Second)...),
		[]byte("RIFF\xff\xff\xff\xffWAVEfmt \xff\xff\xff\xff"), []byte("OggS\x00\x02"))
}

// Whatever a file claims, keeping its samples costs memory and time in proportion to its size.
func TestUpload_CostIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "upload")
	for _, b := range uploads(t) {
		wantCheapUpload(t, path, b)
	}
}

// wantCheapUpload decodes and keeps at most a minute of a file. Calls to the memory statistics stop all goroutines, so they frame the
// whole.
func wantCheapUpload(t *testing.T, path string, b []byte) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	keep := builder{path: path}
	_ = decodeFrom(bytes.NewReader(b), "fuzz", time.Minute, keep.add)
	keep.discard()
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20+uint64(len(b))<<12 || took > 10*time.Second {
		t.Errorf("a file of %d bytes took %d kB and %v: %.60q", len(b), used>>10, took, b)
	}
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
		on := int(c.on * Rate)
		hz, _ := dsp.DominantFrequency(clip.PCM()[:on], Rate)
		if beating := c.country == "us" || c.country == "GB"; clip.Duration() != c.period ||
			math.Abs(hz-c.hz) > 3 && !(beating && math.Abs(hz-c.hz-45) < 10) {
			t.Errorf("%s: %.0f Hz, %v", c.country, hz, clip.Duration())
		}
		if dsp.IsSilent(clip.PCM()[:on]) || !dsp.IsSilent(clip.PCM()[on:on+3000]) {
			t.Errorf("%s: not %v on", c.country, c.on)
		}
	}
}

// The music has a suitable level throughout, without clipping or a click at the seam.
func TestHoldMusic_LevelAndSeam(t *testing.T) {
	t.Parallel()
	pcm := HoldMusic().PCM()
	if d := HoldMusic().Duration(); d < 15*time.Second {
		t.Errorf("repeats after %v", d)
	}
	for i := 0; i+Rate <= len(pcm); i += Rate {
		var sum float64
		for _, v := range pcm[i : i+Rate] {
			sum += float64(v) * float64(v)
		}
		if db := 10 * math.Log10(sum/Rate/32767/32767); db < -32 || db > -12 {
			t.Errorf("second %d is at %.1f dBFS", i/Rate, db)
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
