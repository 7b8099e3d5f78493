package media

import (
	"testing"
	"time"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/dsp"
	"soniq/internal/protocol/media/mediatest"
)

// Injected audio is played without waiting for its end. Silence is sent while none is available. Played returns the
// amount sent.
func TestInjectedAudio_PlayedWhileWritten(t *testing.T) {
	t.Parallel()
	e, phones := testEngine(t, Config{}, newLoop), testEngine(t, Config{}, newLoop)
	p, a := legOf(t, e, phones, codec.PCMU)
	ear := newEarpiece(p)
	f := NewInjectedAudio(8000)
	b := a.PlayInjected(f)
	for range 10 {
		f.Write(dsp.Tone(1200, -10, 100*time.Millisecond, 8000))
	}
	waitFor(t, "the tone", func() bool { return mediatest.NearHz(ear.tone(t), 1200) })
	waitFor(t, "all of it", func() bool { return b.Played() >= 980*time.Millisecond })
	select {
	case <-b.Done():
		t.Fatal("it ended while more may come")
	default:
	}
	for range 4 { // without gaps, so that the tone can be recognised
		f.Write(dsp.Tone(700, -10, 200*time.Millisecond, 8000))
	}
	waitFor(t, "the next", func() bool { return mediatest.NearHz(ear.tone(t), 700) })
	f.End()
	<-b.Done()
	if got := b.Played(); got < 1790*time.Millisecond || got > 1810*time.Millisecond {
		t.Errorf("%v were heard, 1.8 s came", got)
	}
}

// Injected audio that is not played does not grow without limit.
func TestInjectedAudio_Bounded(t *testing.T) {
	t.Parallel()
	f := NewInjectedAudio(16000)
	for range 300 {
		f.Write(make([]int16, 16000))
	}
	if len(f.pcm) > maxInjectedAudio {
		t.Errorf("%d samples are kept", len(f.pcm))
	}
}
