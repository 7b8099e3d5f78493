package media

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/dsp"
	"soniq/internal/protocol/media/mediatest"
	"soniq/internal/protocol/media/record"
	"soniq/internal/protocol/media/wav"
)

// onset returns when a channel first becomes loud after a position, both in ms, or -1.
func onset(pcm []int16, after int) int {
	for i := after * 8; i < len(pcm); i++ {
		if pcm[i] > 3000 || pcm[i] < -3000 {
			return i / 8
		}
	}
	return -1
}

// samplesAt returns a part of the recorded samples.
func samplesAt(t testing.TB, pcm []int16, from, samples int) []int16 {
	t.Helper()
	if from < 0 || from+samples > len(pcm) {
		t.Fatalf("there are %d samples, none from %d to %d", len(pcm), from, from+samples)
	}
	return pcm[from : from+samples]
}

func startRecording(t testing.TB, e *Engine, c testCall, tap func(record.Chunk)) *record.Recorder {
	t.Helper()
	r, err := e.Record(record.Config{Path: filepath.Join(t.TempDir(), "rec", "call.wav"), Left: c.a, Right: c.b, Tap: tap})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func closeRecording(t testing.TB, r *record.Recorder) (record.Result, wav.Audio) {
	t.Helper()
	res, err := r.Close(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w, err := wav.Read(res.Path)
	if err != nil || len(w.PCM) != 2 || w.Rate != 8000 {
		t.Fatalf("%v %d channels", err, len(w.PCM))
	}
	b, _ := os.ReadFile(res.Path)
	sum := sha256.Sum256(b)
	if res.SHA256 != hex.EncodeToString(sum[:]) || res.Size != int64(len(b)) {
		t.Errorf("result %+v does not describe the file", res)
	}
	if want := time.Duration(len(w.PCM[0])) * time.Second / 8000; res.Duration != want {
		t.Errorf("duration %v, the file has %v", res.Duration, want)
	}
	if _, err := os.Stat(res.Path + record.PartSuffix); !os.IsNotExist(err) {
		t.Error("the .part is still there")
	}
	return res, w
}

// Both phones beep at the same time; both channels must show it within 20 ms.
func TestRecord_ChannelsAligned(t *testing.T) {
	t.Parallel()
	eachLoop(t, func(t *testing.T, e *Engine) {
		undisturbed(t, func(t testing.TB) {
			c := newTestCall(t, e)
			r := startRecording(t, e, c, nil)
			began := time.Now()
			for range 3 {
				var wg sync.WaitGroup
				for hz, s := range map[float64]*Stream{440: c.caller, 1000: c.callee} {
					wg.Go(func() {
						beep := append(dsp.Tone(hz, -6, 100*time.Millisecond, 8000), make([]int16, 800)...)
						if err := s.Send(t.Context(), beep); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
			}
			took := time.Since(began)
			res, w := closeRecording(t, r)
			if d := res.Duration - took; d < -30*time.Millisecond || d > 300*time.Millisecond {
				t.Errorf("recording of %v lasts %v", took, res.Duration)
			}
			at := 0
			for n := range 3 {
				left, right := onset(w.PCM[0], at), onset(w.PCM[1], at)
				if left < 0 || right < 0 || math.Abs(float64(left-right)) > 20 {
					t.Fatalf("beep %d is at %d ms left and %d ms right", n, left, right)
				}
				at = left + 150
			}
			if hz, _ := dsp.DominantFrequency(samplesAt(t, w.PCM[0], 8*onset(w.PCM[0], 0), 640), 8000); !mediatest.NearHz(hz, 440) {
				t.Errorf("left is %.0f Hz", hz)
			}
			if hz, _ := dsp.DominantFrequency(samplesAt(t, w.PCM[1], 8*onset(w.PCM[1], 0), 640), 8000); !mediatest.NearHz(hz, 1000) {
				t.Errorf("right is %.0f Hz", hz)
			}
		})
	})
}

// Between calls the goroutines that write recordings sleep. The next call must wake them for its whole duration.
func TestRecord_WritersWakeUpAfterIdle(t *testing.T) {
	t.Parallel()
	undisturbed(t, func(t testing.TB) {
		e := testEngine(t, Config{}, newLoop)
		for range 4 { // every drainer has been active
			_, _ = closeRecording(t, startRecording(t, e, newTestCall(t, e), nil))
		}
		<-time.After(500 * time.Millisecond) // all sleep
		c := newTestCall(t, e)
		r := startRecording(t, e, c, nil)
		if err := c.caller.Send(t.Context(), dsp.Tone(440, -6, 3*time.Second, 8000)); err != nil {
			t.Fatal(err)
		}
		if n := r.Stats().Dropped; n > 0 {
			t.Errorf("%d packets were dropped", n)
		}
		_, w := closeRecording(t, r)
		pcm := w.PCM[0]
		if hz, level := dsp.DominantFrequency(pcm[len(pcm)-8000:], 8000); math.Abs(hz-440) > 5 || level < -12 {
			t.Errorf("the last second holds %.0f Hz at %.0f dBFS", hz, level)
		}
	})
}

func TestRecordPause_Silence(t *testing.T) {
	t.Parallel()
	undisturbed(t, func(t testing.TB) {
		e := testEngine(t, Config{}, newLoop)
		c := newTestCall(t, e)
		r := startRecording(t, e, c, nil)
		beep := func() {
			if err := c.caller.Send(t.Context(), dsp.Tone(440, -6, 200*time.Millisecond, 8000)); err != nil {
				t.Fatal(err)
			}
		}
		beep()
		waitFor(t, "the first beep", func() bool { return c.a.Stats().Received == 10 })
		r.Pause()
		beep()
		waitFor(t, "the second beep", func() bool { return c.a.Stats().Received == 20 })
		r.Resume()
		beep()
		waitFor(t, "the third beep", func() bool { return c.a.Stats().Received == 30 })
		_, w := closeRecording(t, r)
		first := onset(w.PCM[0], 0)
		if next := onset(w.PCM[0], first+210); next-first < 390 || next-first > 450 {
			t.Errorf("beeps at %d and %d ms; what was said in the pause must be silent", first, next)
		}
	})
}

func TestTap_SlowListenerGetsAll(t *testing.T) {
	t.Parallel()
	undisturbed(t, func(t testing.TB) {
		e := testEngine(t, Config{}, newLoop)
		c := newTestCall(t, e)
		var left, right bytes.Buffer
		hold := make(chan struct{})
		r := startRecording(t, e, c, func(ch record.Chunk) {
			<-hold // the first chunk is held until the call has ended
			if want := time.Duration(left.Len()) * time.Second / 8000; ch.At != want {
				t.Errorf("chunk at %v, want %v", ch.At, want)
			}
			left.Write(ch.Left)
			right.Write(ch.Right)
		})
		if err := c.callee.Send(t.Context(), dsp.Tone(1000, -6, 700*time.Millisecond, 8000)); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(10*time.Millisecond, func() { close(hold) })
		_, w := closeRecording(t, r)
		if !bytes.Equal(codec.EncodeULaw(nil, w.PCM[0]), left.Bytes()) || !bytes.Equal(codec.EncodeULaw(nil, w.PCM[1]), right.Bytes()) {
			t.Errorf("the tap had %d bytes, the file has %d samples", left.Len(), len(w.PCM[0]))
		}
		if hz, _ := dsp.DominantFrequency(codec.DecodeULaw(nil, right.Bytes())[2000:4000], 8000); !mediatest.NearHz(hz, 1000) {
			t.Errorf("tap heard %.0f Hz", hz)
		}
	})
}

func TestTap_BlockedListenerDoesNotDelayFile(t *testing.T) {
	t.Parallel()
	e := testEngine(t, Config{}, newLoop)
	c := newTestCall(t, e)
	free, entered := make(chan struct{}), make(chan struct{}, 100)
	r := startRecording(t, e, c, func(record.Chunk) { entered <- struct{}{}; <-free })
	if err := c.callee.Send(t.Context(), dsp.Tone(1000, -6, 400*time.Millisecond, 8000)); err != nil {
		t.Fatal(err)
	}
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	res, err := r.Close(ctx)
	if err != nil || res.Duration < 400*time.Millisecond {
		t.Errorf("%+v %v", res, err)
	}
	close(free)
}

// A crash is simulated by a copy of the .part at any moment, truncated anywhere.
func TestRecoverRecording_AfterCrash(t *testing.T) {
	t.Parallel()
	undisturbed(t, func(t testing.TB) {
		e := testEngine(t, Config{}, newLoop)
		c := newTestCall(t, e)
		path := filepath.Join(t.TempDir(), "call.wav")
		r, err := e.Record(record.Config{Path: path, Left: c.a, Right: c.b})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := c.caller.Send(t.Context(), dsp.Tone(440, -6, 1500*time.Millisecond, 8000)); err != nil {
			t.Fatal(err)
		}
		part := filepath.Join(t.TempDir(), "crashed.wav.part")
		b, err := os.ReadFile(path + record.PartSuffix)
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		if err := os.WriteFile(part, b[:len(b)-len(b)%2-1], 0o600); err != nil { // half a frame at the end
			t.Fatal(err)
		}
		res, err := record.Recover(part)
		if err != nil {
			t.Fatal(err)
		}
		if frames := res.Duration * 8000 / time.Second; res.Size != wav.HeaderLen+2*int64(frames) {
			t.Errorf("%d bytes for %d frames", res.Size, frames)
		}
		if lost := took - res.Duration; lost > 500*time.Millisecond {
			t.Errorf("%v of %v lost", lost, took)
		}
		saved, err := wav.Read(strings.TrimSuffix(part, record.PartSuffix))
		if err != nil {
			t.Fatal(err)
		}
		_, whole := closeRecording(t, r)
		for ch := range saved.PCM {
			for i, v := range saved.PCM[ch] {
				if whole.PCM[ch][i] != v {
					t.Fatalf("channel %d differs from the finished recording at sample %d", ch, i)
				}
			}
		}
		if _, err := record.Recover(part); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("second salvage: %v", err)
		}
	})
}

func TestEngineClose_FinishesRecordings(t *testing.T) {
	t.Parallel()
	e := testEngine(t, Config{}, newLoop)
	c := newTestCall(t, e)
	path := filepath.Join(t.TempDir(), "call.wav")
	r, err := e.Record(record.Config{Path: path, Left: c.a, Right: c.b})
	if err != nil {
		t.Fatal(err)
	}
	e.Close()
	if _, err := wav.Read(path); err != nil {
		t.Error(err)
	}
	if _, err := r.Close(t.Context()); !errors.Is(err, record.ErrClosed) {
		t.Errorf("second close: %v", err)
	}
	if _, err := e.Open(); !errors.Is(err, record.ErrClosed) && !errors.Is(err, ErrNoPorts) {
		t.Errorf("open after close: %v", err)
	}
}

func TestRecord_ReadableBySox(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("soxi"); err != nil {
		t.Skip("sox is not installed")
	}
	e := testEngine(t, Config{}, newLoop)
	c := newTestCall(t, e)
	r, err := e.Record(record.Config{Path: filepath.Join(t.TempDir(), "a.wav"), Left: c.a, Right: c.b, Codec: codec.PCMA})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.caller.Send(t.Context(), dsp.Tone(440, -6, 200*time.Millisecond, 8000)); err != nil {
		t.Fatal(err)
	}
	res, w := closeRecording(t, r)
	if hz, _ := dsp.DominantFrequency(samplesAt(t, w.PCM[0], 8*onset(w.PCM[0], 0), 1200), 8000); !mediatest.NearHz(hz, 440) {
		t.Errorf("A-law file of a µ-law call: %.0f Hz", hz)
	}
	out, err := exec.Command("soxi", res.Path).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Channels       : 2") || !strings.Contains(string(out), "A-law") ||
		!strings.Contains(string(out), fmt.Sprintf("= %d samples", len(w.PCM[0]))) {
		t.Errorf("%s%v", out, err)
	}
}

func TestRecord_InvalidDirectoryRefused(t *testing.T) {
	t.Parallel()
	e := testEngine(t, Config{}, newLoop)
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Record(record.Config{Path: filepath.Join(file, "a.wav")}); err == nil {
		t.Error("recorded below a file")
	}
}
