package record

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"soniq/internal/protocol/media/dsp"
	"soniq/internal/protocol/media/mediatest"
	"soniq/internal/protocol/media/wav"
)

func TestRecoverRecording_Wideband(t *testing.T) {
	t.Parallel()
	l := layout{wav.PCM16, 16000, false}
	h := l.header(0)
	body := mediatest.PCMBytes(dsp.Tone(440, -10, time.Second, 32000)) // 32000 samples: a second of both channels
	path := filepath.Join(t.TempDir(), "a.wav")
	if err := os.WriteFile(path+PartSuffix, bytes.Join([][]byte{h[:], body, {1, 2, 3}}, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	res, err := Recover(path + PartSuffix)
	if err != nil || res.Duration != time.Second {
		t.Fatal(err, res)
	}
	w, err := wav.Read(res.Path)
	if err != nil || len(w.PCM) != 2 || w.Rate != 16000 || !res.Wideband || res.SampleRate != 16000 {
		t.Errorf("%v: %d channels at %d Hz of %+v", err, len(w.PCM), w.Rate, res)
	}
}

func TestRecoverRecording_NoAudio(t *testing.T) {
	t.Parallel()
	part := filepath.Join(t.TempDir(), "a.wav.part")
	for _, b := range [][]byte{nil, make([]byte, 20), make([]byte, 500)} {
		if err := os.WriteFile(part, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Recover(part); !errors.Is(err, ErrNoAudio) {
			t.Errorf("%d bytes: %v", len(b), err)
		}
	}
	if _, err := Recover(filepath.Join(t.TempDir(), "a.wav")); err == nil {
		t.Error("a finished recording was salvaged")
	}
}
