package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"soniq/internal/protocol/media/wav"
)

func TestMeasure_ErrorWithoutPath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.wav"), filepath.Join(dir, "bad.mp3")
	if err := wav.Write(good, wav.Audio{Rate: 16000, PCM: [][]int16{make([]int16, 24000)}}, wav.PCM16); err != nil {
		t.Fatal(err)
	}
	if d, err := measure(good); err != nil || d != 1500*time.Millisecond {
		t.Errorf("%v, %v", d, err)
	}
	if err := os.WriteFile(bad, []byte("ID3\x04 no sound"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{bad, filepath.Join(dir, "none.wav")} {
		if _, err := measure(path); err == nil || strings.Contains(err.Error(), "load clip") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
