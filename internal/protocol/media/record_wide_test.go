package media

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/dsp"
	"soniq/internal/protocol/media/mediatest"
	"soniq/internal/protocol/media/record"
	"soniq/internal/protocol/media/wav"
)

// wideFile reads and checks a finished wide-band recording.
func wideFile(t testing.TB, res record.Result) wav.Audio {
	t.Helper()
	w, err := wav.Read(res.Path)
	if err != nil || w.Rate != 16000 || len(w.PCM) != 2 || res.SampleRate != 16000 || !res.Wideband {
		t.Fatalf("%v: %d Hz, result %+v", err, w.Rate, res)
	}
	if want := time.Duration(len(w.PCM[0])) * time.Second / 16000; res.Duration != want ||
		res.Size != wav.HeaderLen+int64(4*len(w.PCM[0])) {
		t.Errorf("%+v does not describe %v", res, want)
	}
	return w
}

// toneShare returns the share of 40 ms pieces between from and to, in s, that have a tone.
func toneShare(pcm []int16, rate int, hz, from, to float64) float64 {
	part := pcm[min(len(pcm), int(from*float64(rate))):min(len(pcm), int(to*float64(rate)))]
	return toneSeconds(part, rate, hz) / max(float64(len(part)/(rate/25))/25, 0.04)
}

// toneSeconds returns the total duration of a tone in s, in pieces of 40 ms.
func toneSeconds(pcm []int16, rate int, hz float64) float64 {
	good := 0
	for i := 0; i+rate/25 <= len(pcm); i += rate / 25 {
		if mediatest.Pure(pcm[i:i+rate/25], hz, rate) > 0.9 {
			good++
		}
	}
	return float64(good) / 25
}

// Legs of any codec are recorded, in both layouts, also while they are transcoded.
func TestRecord_EveryCodec(t *testing.T) {
	t.Parallel()
	for c := range codec.Count {
		for _, wide := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v wide %v", c, wide), func(t *testing.T) {
				t.Parallel()
				skipUnencodable(t, c)
				undisturbed(t, func(t testing.TB) {
					e, phones := testEngine(t, Config{}, newLoop), testEngine(t, Config{}, newLoop)
					p, a := legOf(t, e, phones, c)
					q, b := legOf(t, e, phones, codec.PCMA)
					Bridge(a, b)
					var tapped int
					r, err := e.Record(record.Config{Path: filepath.Join(t.TempDir(), "a.wav"), Left: a, Right: b, Codec: codec.PCMA,
						Wideband: wide,
						Tap: func(c record.Chunk) {
							if (c.Wide != nil) != wide {
								t.Errorf("chunk %+v", c)
							}
							if wide {
								tapped += len(c.Wide.Left)
							} else {
								tapped += len(c.Left)
							}
						}})
					if err != nil {
						t.Fatal(err)
					}
					other := make(chan error, 1)
					go func() { other <- q.Send(t.Context(), dsp.Tone(1000, -10, 1500*time.Millisecond, 8000)) }()
					if err := errors.Join(p.Send(t.Context(), dsp.Tone(440, -10, 1500*time.Millisecond, 8000)), <-other); err != nil {
						t.Fatal(err)
					}
					res, err := r.Close(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					w, err := wav.Read(res.Path)
					if err != nil {
						t.Fatal(err)
					}
					if wide {
						w = wideFile(t, res)
					}
					if l, r := toneSeconds(w.PCM[0], w.Rate, 440), toneSeconds(w.PCM[1], w.Rate, 1000); l < 0.8 || r < 0.8 {
						t.Errorf("left %.2f s, right %.2f s of 1.5 s", l, r)
					}
					if tapped != len(w.PCM[0]) {
						t.Errorf("the tap had %d of %d samples", tapped, len(w.PCM[0]))
					}
				})
			})
		}
	}
}

// After a restart the recording continues in the same file; the time between is silence.
func TestRecordAppend_AfterRestart(t *testing.T) {
	t.Parallel()
	for _, wide := range []bool{false, true} {
		undisturbed(t, func(t testing.TB) {
			path := filepath.Join(t.TempDir(), "a.wav")
			first := testEngine(t, Config{}, newLoop)
			phones := testEngine(t, Config{}, newLoop)
			p, a := legOf(t, first, phones, codec.PCMU)
			r, err := first.Record(record.Config{Path: path, Left: a, Wideband: wide, Append: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Send(t.Context(), dsp.Tone(440, -10, time.Second, 8000)); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "it is written", func() bool { i, _ := os.Stat(path + record.PartSuffix); return i.Size() > 8000 })
			crashed, err := os.ReadFile(path + record.PartSuffix)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path+record.PartSuffix, crashed[:len(crashed)-1], 0o600); err != nil {
				t.Fatal(err)
			}
			past := time.Now().Add(-2 * time.Second)
			if err := os.Chtimes(path+record.PartSuffix, past, past); err != nil {
				t.Fatal(err)
			}
			second := testEngine(t, Config{}, newLoop)
			q, b := legOf(t, second, phones, codec.PCMU)
			again, err := second.Record(record.Config{Path: path, Left: b, Append: true}) // the layout of the existing file applies
			if err != nil {
				t.Fatal(err)
			}
			if err := q.Send(t.Context(), dsp.Tone(1000, -10, time.Second, 8000)); err != nil {
				t.Fatal(err)
			}
			res, err := again.Close(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w, err := wav.Read(res.Path)
			if err != nil || res.Wideband != wide {
				t.Fatal(err, res)
			}
			width := map[bool]int64{false: 1, true: 2}[wide]
			before := float64(int64(len(crashed)-wav.HeaderLen)/(2*width)) / float64(w.Rate)
			if x := toneShare(w.PCM[0], w.Rate, 440, 0.1, before-0.1); x < 0.5 {
				t.Errorf("wide %v: before the restart %.2f", wide, x)
			}
			if gap := w.PCM[0][int((before+0.05)*float64(w.Rate)):int((before+1.9)*float64(w.Rate))]; !dsp.IsSilent(gap) {
				t.Errorf("wide %v: the time between is not silent", wide)
			}
			if x := toneShare(w.PCM[0], w.Rate, 1000, before+2.2, before+2.9); x < 0.5 {
				t.Errorf("wide %v: after the restart %.2f", wide, x)
			}
		})
	}
}

func TestRecordAppend_WithoutPart(t *testing.T) {
	t.Parallel()
	e := testEngine(t, Config{}, newLoop)
	path := filepath.Join(t.TempDir(), "a.wav")
	if err := os.WriteFile(path+record.PartSuffix, make([]byte, 100), 0o600); err != nil { // zeros after a power failure
		t.Fatal(err)
	}
	r, err := e.Record(record.Config{Path: path, Append: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Record(record.Config{Path: filepath.Join(t.TempDir(), "b.wav"), Append: true}); err != nil {
		t.Fatal(err)
	}
}

// Audio during a pause is in no file, whatever the codec, because it never reaches the recorder.
func TestRecordPause_TranscodedLeg(t *testing.T) {
	t.Parallel()
	e, phones := testEngine(t, Config{}, newLoop), testEngine(t, Config{}, newLoop)
	p, a := legOf(t, e, phones, codec.G722)
	_, b := legOf(t, e, phones, codec.PCMU)
	Bridge(a, b)
	r, err := e.Record(record.Config{Path: filepath.Join(t.TempDir(), "a.wav"), Left: a, Right: b, Wideband: true})
	if err != nil {
		t.Fatal(err)
	}
	r.Pause()
	if err := p.Send(t.Context(), dsp.Tone(440, -10, 500*time.Millisecond, 8000)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "it came", func() bool { return a.Stats().Received >= 25 })
	r.Resume()
	res, err := r.Close(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !dsp.IsSilent(wideFile(t, res).PCM[0]) {
		t.Error("words of the pause are in the file")
	}
}
