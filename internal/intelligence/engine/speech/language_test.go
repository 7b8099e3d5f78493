package speech

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/transcript"
)

// A language tag reaches a server as the code of its language. If the server rejects the language, the error says that.
//
// https://github.com/OpenWhispr/openwhispr/issues/260
func TestOpenAIRecognizer_Language(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l := r.FormValue("language"); l != "de" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"message":"Unsupported language: `+l+`"}}`)
			return
		}
		_, _ = io.WriteString(w, `{"text":"Guten Tag"}`)
	}))
	t.Cleanup(server.Close)
	l, err := NewRecognizer(engine.Config{Engine: server.URL, Client: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	clip := transcript.Clip{PCM: make([]int16, 8000), Rate: 8000}
	for _, tag := range []string{"de", "de-CH", "DE", "deu"} {
		clip.Language = tag
		if h, err := l.Transcribe(context.Background(), clip); err != nil || h.Text != "Guten Tag" {
			t.Errorf("%s: %q, %v", tag, h.Text, err)
		}
	}
	clip.Language = "en"
	_, err = l.Transcribe(context.Background(), clip)
	if u, ok := transcript.AsUnsupportedLanguage(err); !ok || u.Language != "en" {
		t.Errorf("rejected language: %v", err)
	}
}

// The languages of a model are read from its metadata, its family, or the name of its folder. A model of unknown
// languages is tried.
func TestSherpaModel_KnownLanguages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		model sherpaModel
		want  string
	}{
		{sherpaModel{family: "whisper", languages: []string{"de", "fr"}}, "de fr"},
		{sherpaModel{family: "whisper", monolingual: true}, "en"},
		{sherpaModel{family: "moonshine"}, "en"},
		{sherpaModel{family: "sense-voice"}, "zh en ja ko yue"},
		{sherpaModel{family: "nemo-transducer", dir: "/m/sherpa-onnx-nemo-fast-conformer-transducer-be-de-en-es-20k"}, "be de en es"},
		{sherpaModel{family: "paraformer", dir: "/m/sherpa-onnx-paraformer-zh-2023"}, "zh"},
		{sherpaModel{family: "paraformer", dir: "/m/my-model"}, ""},
		{sherpaModel{}, ""},
	} {
		if got := strings.Join(c.model.knownLanguages(), " "); got != c.want {
			t.Errorf("%+v: %s, want %s", c.model, got, c.want)
		}
	}
	if err := requireLanguage("x", "", []string{"de"}, "de-CH"); err != nil || requireLanguage("x", "", nil, "fi") != nil {
		t.Errorf("a known or unknown language is refused: %v", err)
	}
	if _, ok := transcript.AsMissingDependency(requireLanguage("x", "", []string{"de"}, "fr")); !ok {
		t.Error("an unknown language is no missing dependency")
	}
}

// isEnglish compares languages, not prefixes.
func TestIsEnglish(t *testing.T) {
	t.Parallel()
	got := []bool{isEnglish(""), isEnglish("en"), isEnglish("EN-gb"), isEnglish("enm"), isEnglish("de")}
	if !slices.Equal(got, []bool{true, true, true, false, false}) {
		t.Errorf("English: %v", got)
	}
}
