package speech

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"soniq/internal/intelligence/engine/enginetest"
	installed "soniq/internal/intelligence/speechmodel"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/protocol/media/wav"
)

// needEnglishModel returns a recogniser with the model that scripts/hearing installs, which make test does. It skips
// the test if the model is not installed.
func needEnglishModel(t testing.TB) *Sherpa {
	t.Helper()
	dir := installed.Find()
	if dir == "" {
		t.Skip("the model is not installed: scripts/hearing does it")
	}
	return newTestEnglish(t, dir, 1)
}

func TestEnglishModel_ShortSentences(t *testing.T) {
	s := needEnglishModel(t)
	for _, sentence := range []string{"Where can I park?", "What are your opening hours?", "I want to speak to a person please."} {
		for _, v := range []string{"rms", "slt"} {
			clip := transcript.Clip{PCM: telephone(flite(t, v, sentence)), Rate: 8000, NarrowBand: true, Language: "en"}
			h, err := s.Transcribe(context.Background(), clip)
			if err != nil {
				t.Fatal(err)
			}
			if want, got := strings.Join(enginetest.NormalizedWords(sentence), " "),
				strings.Join(enginetest.NormalizedWords(h.Text), " "); got != want {
				t.Errorf("%s: %q was understood, not %q", v, h.Text, sentence)
			}
		}
	}
}

// For this clip ("Where can I park?", voice rms of flite, telephone band) the model returns no text until the audio
// is changed slightly. The recogniser must retry with such changes.
func TestEnglishModel_EmptyResultRetried(t *testing.T) {
	s := needEnglishModel(t)
	w, err := wav.Read("testdata/park.wav")
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.Transcribe(context.Background(), transcript.Clip{PCM: w.PCM[0], Rate: 8000, NarrowBand: true, Language: "en"})
	if err != nil || !strings.Contains(strings.ToLower(h.Text), "where can i") {
		t.Errorf("%q was understood: %v", h.Text, err)
	}
}

func TestEnglishModel_NoWordsInNoise(t *testing.T) {
	s := needEnglishModel(t)
	random := rand.New(rand.NewPCG(1, 2))
	for name, sample := range map[string]func(i int) float64{
		"silence": func(int) float64 { return 0 },
		"a tone":  func(i int) float64 { return 0.3 * math.Sin(2*math.Pi*440*float64(i)/8000) },
		"ringing": func(i int) float64 {
			return 0.2 * (math.Sin(2*math.Pi*440*float64(i)/8000) + math.Sin(2*math.Pi*480*float64(i)/8000))
		},
		"hissing": func(int) float64 { return 0.1 * random.NormFloat64() },
		"a 5": func(i int) float64 {
			return 0.3 * (math.Sin(2*math.Pi*770*float64(i)/8000) + math.Sin(2*math.Pi*1336*float64(i)/8000))
		},
		"humming":  func(i int) float64 { return 0.2 * math.Sin(2*math.Pi*50*float64(i)/8000) },
		"clicking": func(i int) float64 { return map[bool]float64{true: 0.8}[i%2000 < 4] },
	} {
		pcm := make([]int16, 3*8000)
		for i := range pcm {
			pcm[i] = int16(min(max(sample(i), -1), 1) * 32767)
		}
		wantNoText(t, s, name, pcm)
	}
}

func TestEnglishModel_OtherLanguageRefused(t *testing.T) {
	s := NewEnglishSherpa([]string{"/nowhere"}, t.TempDir(), 1)
	t.Cleanup(s.Close)
	_, err := s.Transcribe(context.Background(), transcript.Clip{PCM: make([]int16, 8000), Rate: 8000, Language: "de"})
	if m, ok := transcript.AsMissingDependency(err); !ok || !strings.Contains(m.Problem, "English only, not de") {
		t.Errorf("German: %v", err)
	}
}

func wantNoText(t *testing.T, s *Sherpa, name string, pcm []int16) {
	t.Helper()
	h, err := s.Transcribe(context.Background(), transcript.Clip{PCM: pcm, Rate: 8000, NarrowBand: true, Language: "en"})
	if err != nil {
		t.Fatal(err)
	}
	if h.Text != "" {
		t.Errorf("%s: %q", name, h.Text)
	}
}

// Terms that the model does not accept as input are written if the recognised words sound like them. The terms of
// other calls are not.
func TestEnglishModel_VocabularyTerms(t *testing.T) {
	s := needEnglishModel(t)
	terms := termsOf("Florian Oberhauser", "Gwendolyn Pritchard", "Plumbatec", "Hydrosentry", "Zyntrix")
	for _, c := range []struct{ said, name string }{
		{"We are having trouble with the Plumbatec since Monday.", "Plumbatec"},
		{"I was promised a refund by Florian Oberhauser.", "Florian Oberhauser"},
		{"I would like to order two more Hydrosentry units.", "Hydrosentry"},
	} {
		clip := transcript.Clip{PCM: telephone(append(flite(t, "rms", c.said), make([]float64, 8000)...)), Rate: 8000, NarrowBand: true, Language: "en"}
		hear := func(terms []transcript.Term) string {
			clip.Terms = terms
			h, err := s.Transcribe(context.Background(), clip)
			if err != nil {
				t.Fatal(err)
			}
			return h.Text
		}
		before := hear(nil)
		if got := hear(terms); !strings.Contains(got, c.name) || strings.Contains(before, c.name) {
			t.Errorf("%q was understood, and %q without terms: %s", got, before, c.name)
		}
		if got := hear(termsOf("Krzysztof Wojciechowski", "Lumaflow")); got != before {
			t.Errorf("with the names of others %q was understood, not %q", got, before)
		}
	}
}
