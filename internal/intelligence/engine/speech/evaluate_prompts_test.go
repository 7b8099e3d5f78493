package speech

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"soniq/internal/intelligence/engine/enginetest"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/protocol/media/codec"
)

// Asterisk's English prompts, as packaged by Debian: one human speaker recorded them for the telephone. They are for
// evaluation only, never for training.
const (
	promptTexts = "/usr/share/doc/asterisk-core-sounds-en/core-sounds-en.txt.gz"
	promptFiles = "/usr/share/asterisk/sounds/en_US_f_Allison"
)

var promptLine = regexp.MustCompile(`^([\w/-]+): (.*)$`)

// prompts returns every fourth prompt, sorted by name, of those with six words or more and no digits.
// SONIQ_EVAL_PROMPTS=try returns a different quarter, for experiments.
func prompts(t testing.TB) []enginetest.Script {
	t.Helper()
	f, err := os.Open(promptTexts)
	if err != nil {
		t.Fatalf("%v: scripts/setup eval installs the prompts", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var all []enginetest.Script
	for lines := bufio.NewScanner(z); lines.Scan(); {
		m := promptLine.FindStringSubmatch(strings.ToValidUTF8(lines.Text(), ""))
		if m == nil || strings.ContainsAny(m[2], "[0123456789") || len(enginetest.NormalizedWords(m[2])) < 6 || !bothThere(m[1]) {
			continue
		}
		s := enginetest.Script{ID: m[1]}
		s.Turns = append(s.Turns, struct{ Speaker, Text string }{"caller", m[2]})
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b enginetest.Script) int { return strings.Compare(a.ID, b.ID) })
	first := 2
	if os.Getenv("SONIQ_EVAL_PROMPTS") == "try" {
		first = 0
	}
	var out []enginetest.Script
	for i := first; i < len(all); i += 4 {
		out = append(out, all[i])
	}
	return out
}

func bothThere(name string) bool {
	for _, kind := range []string{".wav", ".g722"} {
		if _, err := os.Stat(filepath.Join(promptFiles, name+kind)); err != nil {
			return false
		}
	}
	return true
}

// prompt returns a call in which only a prompt is played: as recorded at 8 kHz, or at 16 kHz in G.722.
func prompt(t testing.TB, s enginetest.Script, wide bool) spokenCall {
	t.Helper()
	call := spokenCall{Script: s, format: muLawStereo}
	kind := ".wav"
	if wide {
		call.format = transcript.Format{Encoding: transcript.PCM16, Rate: 16000, Channels: 2}
		kind = ".g722"
	}
	b, err := os.ReadFile(filepath.Join(promptFiles, s.ID+kind))
	if err != nil {
		t.Fatal(err)
	}
	quiet := make([]int16, call.format.Rate/2)
	pcm := codec.DecodeG722
	if !wide {
		pcm = func(b []byte) []int16 { return decodeSamples(b[44:]) }
	}
	said := slices.Concat(quiet, pcm(b), quiet)
	call.seconds = float64(len(said)) / float64(call.format.Rate)
	for _, v := range said {
		if wide {
			call.audio = binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(call.audio, uint16(v)), 0)
			continue
		}
		call.audio = append(call.audio, encodeMuLaw(v), encodeMuLaw(0))
	}
	return call
}
