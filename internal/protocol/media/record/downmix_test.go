package record

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/dsp"
	"soniq/internal/protocol/media/mediatest"
	"soniq/internal/protocol/media/wav"
)

func TestRecordMono_BothSidesInOneChannel(t *testing.T) {
	t.Parallel()
	for name, wide := range map[string]bool{"narrow": false, "wide": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := layoutOf(Config{Codec: codec.PCMA, Wideband: wide, Mono: true})
			path := filepath.Join(t.TempDir(), "call.wav")
			rate := int(l.rate)
			left, right := dsp.Tone(440, -12, time.Second+time.Second/time.Duration(rate), rate),
				dsp.Tone(1000, -12, time.Second+time.Second/time.Duration(rate), rate)
			left[0], right[0] = 30000, 30000 // too loud together
			h := l.header(0)
			part := h[:]
			for i := range left {
				both := make([]byte, 2*l.width())
				wav.PutSample(both, left[i], l.encoding)
				wav.PutSample(both[l.width():], right[i], l.encoding)
				part = append(part, both...)
			}
			part = append(part, 1) // half a sample
			if err := os.WriteFile(path+PartSuffix, part, 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := Recover(path + PartSuffix)
			if err != nil || r.Channels != 1 || r.Duration.Round(time.Millisecond) != time.Second {
				t.Fatalf("%+v, %v", r, err)
			}
			w, err := wav.Read(path)
			if err != nil || len(w.PCM) != 1 || w.PCM[0][0] < 30000 {
				t.Fatalf("%d channels of the file, first %v, %v", len(w.PCM), w.PCM, err)
			}
			both := w.PCM[0]
			for i := range both {
				both[i] -= left[i]
			}
			if hz, _ := dsp.DominantFrequency(both[1:], rate); !mediatest.NearHz(hz, 1000) {
				t.Errorf("without the left side it is %.0f Hz", hz)
			}
			if names, _ := filepath.Glob(path + ".*"); len(names) != 0 {
				t.Errorf("left: %v", names)
			}
		})
	}
}
