package speech

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"soniq/internal/intelligence/engine/speech/sherpatest"
	"soniq/internal/intelligence/transcript"
)

func TestFindSherpaModel_Families(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		files, first, kind, family string
		want                       map[string]string
	}{
		{"encoder-epoch-99-avg-1.onnx encoder-epoch-99-avg-1.int8.onnx decoder-epoch-99-avg-1.onnx joiner-epoch-99-avg-1.onnx tokens.txt silero_vad.onnx",
			"encoder-epoch-99-avg-1.int8.onnx", "zipformer2", "transducer",
			map[string]string{"encoder": "encoder-epoch-99-avg-1.int8.onnx", "decoder": "decoder-epoch-99-avg-1.onnx", "joiner": "joiner-epoch-99-avg-1.onnx"}},
		{"encoder.int8.onnx decoder.int8.onnx joiner.int8.onnx tokens.txt", "encoder.int8.onnx", "EncDecRNNTBPEModel", "nemo-transducer",
			map[string]string{"encoder": "encoder.int8.onnx"}},
		{"tiny.en-encoder.onnx tiny.en-decoder.onnx tiny.en-tokens.txt", "tiny.en-encoder.onnx", "whisper-tiny.en", "whisper",
			map[string]string{"decoder": "tiny.en-decoder.onnx"}},
		{"preprocess.onnx encode.int8.onnx uncached_decode.int8.onnx cached_decode.int8.onnx tokens.txt", "encode.int8.onnx", "", "moonshine",
			map[string]string{"uncached": "uncached_decode.int8.onnx", "cached": "cached_decode.int8.onnx", "preprocessor": "preprocess.onnx"}},
		{"encoder_model.ort decoder_model_merged.ort tokens.txt", "", "", "moonshine-2", map[string]string{"merged": "decoder_model_merged.ort"}},
		{"model.int8.onnx tokens.txt", "model.int8.onnx", "paraformer", "paraformer", map[string]string{"model": "model.int8.onnx"}},
		{"model.onnx tokens.txt", "model.onnx", "EncDecCTCModelBPE", "nemo-ctc", nil},
		{"model.onnx tokens.txt", "model.onnx", "wenet_ctc", "wenet-ctc", nil},
		{"model.onnx tokens.txt", "model.onnx", "sense_voice_ctc", "sense-voice", nil},
	} {
		t.Run(c.family, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, name := range strings.Fields(c.files) {
				if err := os.WriteFile(filepath.Join(dir, name), []byte("\x08\x08"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if c.first != "" {
				own := t.TempDir()
				sherpatest.Model(t, own, map[string]string{"model_type": c.kind})
				if err := os.Rename(filepath.Join(own, "model.onnx"), filepath.Join(dir, c.first)); err != nil {
					t.Fatal(err)
				}
			}
			m, err := findSherpaModel(dir)
			if err != nil || m.family != c.family || !strings.HasSuffix(m.tokens, "tokens.txt") {
				t.Fatalf("it is %+v, %v", m, err)
			}
			for part, name := range c.want {
				if m.parts[part] != filepath.Join(dir, name) {
					t.Errorf("its %s is %s, want %s", part, m.parts[part], name)
				}
			}
		})
	}
}

func TestFindSherpaModel_Languages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sherpatest.Model(t, dir, map[string]string{"model_type": "whisper-tiny", "is_multilingual": "1", "all_language_codes": "en,de,fr"})
	for _, part := range []string{"tiny-encoder.onnx", "tiny-decoder.onnx"} {
		copyFile(t, dir, "model.onnx", part)
	}
	removeFile(t, filepath.Join(dir, "model.onnx"))
	m, err := findSherpaModel(dir)
	if err != nil || strings.Join(m.languages, " ") != "en de fr" {
		t.Errorf("it is %+v, %v", m, err)
	}
}

func TestSherpaResult_Words(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		r    sherpaResult
		want string
	}{
		{"pieces", sherpaResult{Text: " HELLO WORLD", Tokens: []string{" HE", "LLO", " WORLD"}, Timestamps: []float64{0.4, 0.5, 1.2}},
			"HELLO 400-740, WORLD 1200-1440"},
		{"marked pieces with durations", sherpaResult{Text: "Yes, please.", Tokens: []string{"▁Yes", ",", "▁please", "."}, Timestamps: []float64{0.1, 0.4, 0.5, 1.0},
			Durations: []float64{0.3, 0.08, 0.5, 0.1}}, "Yes, 100-480, please. 500-1100"},
		{"letters with spaces", sherpaResult{Text: "no go", Tokens: []string{"n", "o", " ", "g", "o"}, Timestamps: []float64{0, 0.1, 0.2, 0.3, 0.4}},
			"no 0-200, go 300-640"},
		{"pieces that go on", sherpaResult{Text: "hello there", Tokens: []string{"hel@@", "lo", "there"}, Timestamps: []float64{0, 0.2, 0.4}}, "hello 0-400, there 400-640"},
		{"signs", sherpaResult{Text: "你好 ok", Tokens: []string{"你", "好", "▁ok"}, Timestamps: []float64{0, 0.2, 0.4}}, "你 0-200, 好 200-400, ok 400-640"},
		{"end of the clip", sherpaResult{Text: "late", Tokens: []string{"late"}, Timestamps: []float64{1.9}}, "late 1900-2000"},
		{"other text than tokens", sherpaResult{Text: "12", Tokens: []string{"▁twelve"}, Timestamps: []float64{0}}, ""},
		{"no times", sherpaResult{Text: "hello", Tokens: []string{"hello"}}, ""},
		{"nothing", sherpaResult{}, ""},
	} {
		var got []string
		for _, w := range c.r.words(2000) {
			got = append(got, wordWithTimes(w.Text, w.StartMS, w.EndMS))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: got %s, want %s", c.name, text, c.want)
		}
	}
}

func TestSherpaResult_Formatting(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, language, want string }{
		{" CALL ME AT FOUR FOUR SEVEN", "en-GB", "Call me at 447."},
		{"Call me at 447, please.", "en", "Call me at 447, please."},
		{"Write to support at example.org, please.", "en", "Write to support@example.org, please."},
		{"Schreiben Sie support at example.org.", "de", "Schreiben Sie support at example.org."},
		{"GUTEN TAG", "de", "guten tag"},
		{"你好", "zh", "你好"},
		{"  ", "en", ""},
	} {
		if h := (sherpaResult{Text: c.text}).recognition(c.language, 1000); h.Text != c.want || h.Confidence != 0 {
			t.Errorf("%q in %s became %+v, want %q", c.text, c.language, h, c.want)
		}
	}
	a := withAddresses(transcript.Recognition{Text: "Bob underscore Jones at example.net.", Words: []transcript.Word{{Text: "Bob", StartMS: 10, EndMS: 20},
		{Text: "underscore", StartMS: 20, EndMS: 30}, {Text: "Jones", StartMS: 30, EndMS: 40}, {Text: "at", StartMS: 40, EndMS: 50},
		{Text: "example.net.", StartMS: 50, EndMS: 90}}}, "en")
	if len(a.Words) != 1 || a.Words[0].Text != a.Text || a.Text != "bob_jones@example.net." || a.Words[0].StartMS != 10 ||
		a.Words[0].EndMS != 90 {
		t.Errorf("an address became %+v", a)
	}
	h := sherpaResult{Text: "OH YES", Tokens: []string{" OH", " YES"}, Timestamps: []float64{0, 1}, LogProbs: []float64{-0.105, -0.357}}.recognition("en", 2000)
	if h.Words[0].Confidence < 0.89 || h.Words[0].Confidence > 0.91 || h.Confidence < 0.79 || h.Confidence > 0.81 ||
		h.Words[0].Text != "oh" {
		t.Errorf("probabilities of 0.9 and 0.7 became %+v", h)
	}
}

func wordWithTimes(text string, from, to int) string { return fmt.Sprintf("%s %d-%d", text, from, to) }
