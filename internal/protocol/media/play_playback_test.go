package media

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/internal/protocol/media/clip"
	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/dsp"
	"soniq/internal/protocol/media/mediatest"
)

func tone16(hz float64, d time.Duration) *clip.Clip {
	return clip.New(dsp.Tone(hz, -10, d, 16000), 16000)
}

func TestPlay_ReplacesOtherAudio(t *testing.T) {
	t.Parallel()
	for c := range codec.Count {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			skipUnencodable(t, c)
			e, phones := testEngine(t, Config{}, newLoop), testEngine(t, Config{}, newLoop)
			p, a := legOf(t, e, phones, c)
			q, b := legOf(t, e, phones, codec.PCMU)
			Bridge(a, b)
			ear := newEarpiece(p)
			playTone(t, q, 440)
			waitFor(t, "the other side", func() bool { return mediatest.NearHz(ear.tone(t), 440) })
			music := a.Play(tone16(700, 300*time.Millisecond), PlayOptions{Loop: true})
			waitFor(t, "the music", func() bool { return mediatest.NearHz(ear.tone(t), 700) })
			prompt := a.Play(tone16(1200, 400*time.Millisecond), PlayOptions{})
			<-music.Done()
			waitFor(t, "the prompt", func() bool { return mediatest.NearHz(ear.tone(t), 1200) })
			<-prompt.Done()
			waitFor(t, "the other side again", func() bool { return mediatest.NearHz(ear.tone(t), 440) })
		})
	}
}

func TestPlay_EndsWithStream(t *testing.T) {
	t.Parallel()
	s := openStream(t, testEngine(t, Config{}, newLoop))
	b := s.Play(clip.HoldMusic(), PlayOptions{Loop: true})
	s.Close()
	<-b.Done()
	<-s.Play(clip.HoldMusic(), PlayOptions{Loop: true}).Done()
}

// A loop has no gap at the seam, and gain is a factor.
func TestPlay_LoopHasNoGap(t *testing.T) {
	t.Parallel()
	b := &Playback{clip: clip.New(make([]int16, 500), clip.Rate), opts: PlayOptions{Loop: true, Gain: 0.5}}
	for i := range b.clip.PCM() {
		b.clip.PCM()[i] = int16(2 * i)
	}
	for n := range 50 {
		for i, v := range b.nextFrame() {
			if want := int16((n*320 + i) % 500); v != want {
				t.Fatalf("frame %d sample %d is %d, want %d", n, i, v, want)
			}
		}
	}
}

// Digits interrupt a playback, which continues afterwards.
func TestPlay_InterruptedByDigits(t *testing.T) {
	t.Parallel()
	e, phones := testEngine(t, Config{}, newLoop), testEngine(t, Config{}, newLoop)
	p, a := legOf(t, e, phones, codec.G722)
	ear := newEarpiece(p)
	a.Play(tone16(700, time.Second), PlayOptions{Loop: true})
	waitFor(t, "the tone", func() bool { return mediatest.NearHz(ear.tone(t), 700) })
	if err := a.SendDTMF(t.Context(), "1w9", DTMFOptions{Duration: 60 * time.Millisecond, Gap: 40 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	ear.wait(t, func() bool { return ear.digits == "19" })
	waitFor(t, "the tone again", func() bool { return mediatest.NearHz(ear.tone(t), 700) })
}

func TestSendDTMF_Inband(t *testing.T) {
	t.Parallel()
	e, phones := testEngine(t, Config{}, newLoop), testEngine(t, Config{}, newLoop)
	undisturbed(t, func(t testing.TB) {
		p, a := openStream(t, phones), openStream(t, e)
		connect(p, a, formatsOf(codec.PCMA)[:1])
		ear := newEarpiece(p)
		if a.TakesEvents() || !errors.Is(a.SendDTMF(t.Context(), "1", DTMFOptions{}), ErrNoEvents) {
			t.Error("events where none were negotiated")
		}
		if err := a.SendDTMF(t.Context(), "159D*#0w2", DTMFOptions{Inband: true}); err != nil {
			t.Fatal(err)
		}
		ear.wait(t, func() bool { return strings.HasSuffix(ear.digits, "2") })
		// A busy machine may cut a tone in two.
		if got := string(slices.Compact([]rune(ear.digits))); got != "159D*#02" {
			t.Errorf("heard %q", got)
		}
	})
}
