package media

import (
	"sync"
	"testing"
	"time"

	"soniq/internal/protocol/media/clip"
	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/dsp"
	"soniq/internal/protocol/media/mediatest"
)

// Audio above 4 kHz passes through wide-band legs, transcoded or not, at the requested rate.
func TestBridge_WidebandKept(t *testing.T) {
	t.Parallel()
	skipUnencodable(t, codec.Opus)
	e, phones := testEngine(t, Config{}, newLoop), testEngine(t, Config{}, newLoop)
	p, a := legOf(t, e, phones, codec.G722)
	q, b := legOf(t, e, phones, codec.Opus)
	Bridge(a, b)
	p.Play(clip.New(dsp.Tone(5200, -10, time.Second, 16000), 16000), PlayOptions{Loop: true})
	for _, rate := range []int{16000, 24000} {
		var mu sync.Mutex
		var pcm []int16
		q.OnAudioRate(rate, func(piece []int16) {
			mu.Lock()
			defer mu.Unlock()
			if len(piece) != rate/50 {
				t.Errorf("%d samples at %d Hz", len(piece), rate)
			}
			pcm = append(pcm, piece...)
		})
		waitFor(t, "5200 Hz", func() bool {
			mu.Lock()
			defer mu.Unlock()
			n := rate / 5
			return len(pcm) >= n && mediatest.Pure(pcm[len(pcm)-n:], 5200, rate) > 0.8
		})
	}
}
