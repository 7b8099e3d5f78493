package enginetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"soniq/internal/intelligence/engine"
)

// FakeOpenAI is an OpenAI-compatible server that behaves as one product does.
type FakeOpenAI struct {
	Dialect string
	Answers []string // answers of the model, in order; the last is repeated

	mu        sync.Mutex // guards requested and Answers
	requested []string   // requested formats, in order
}

// Serve starts the server for one test and returns the settings that select it.
func (s *FakeOpenAI) Serve(t *testing.T) engine.Config {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/audio/transcriptions", s.transcribe)
	mux.HandleFunc("POST /v1/chat/completions", s.chat)
	mux.HandleFunc("POST /v1/embeddings", s.embed)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return engine.Config{Engine: server.URL, Key: "secret-key", Model: "m1", Client: server.Client()}
}

func (s *FakeOpenAI) record(form string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requested = append(s.requested, form)
}

// requests returns how many formats were requested.
func (s *FakeOpenAI) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requested)
}

// Forms returns the formats that were requested, separated by spaces.
func (s *FakeOpenAI) Forms() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.requested, " ")
}

func writeError(w http.ResponseWriter, status int, message string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":{"message":%q}}`, message)
}

func (s *FakeOpenAI) transcribe(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer secret-key" {
		writeError(w, 401, "bad key")
		return
	}
	file, head, err := r.FormFile("file")
	if err != nil || head.Size < 44+2*4000 {
		writeError(w, 400, "audio is too short")
		return
	}
	defer file.Close()
	form, words := r.FormValue("response_format"), r.FormValue("timestamp_granularities[]") == "word"
	prompt := r.FormValue("prompt")
	s.record(fmt.Sprintf("%s/%v", form, words) + prompt)
	const head1 = `{"task":"transcribe","language":"english","duration":1.0,"text":" Hello there."`
	const segment = `{"id":0,"start":0,"end":1,"text":" Hello there.","avg_logprob":-0.1,"no_speech_prob":0.01`
	switch {
	case s.Dialect == "promptless" && prompt != "":
		writeError(w, 400, "unknown field prompt")
	case s.Dialect == "echo":
		fmt.Fprintf(w, `{"text":%q}`, " "+prompt+".")
	case s.Dialect == "openai" && words && form == "json":
		writeError(w, 400, "timestamp_granularities is only available with verbose_json")
	case s.Dialect == "vllm" && form == "verbose_json":
		writeError(w, 400, "verbose_json is not supported")
	case s.Dialect == "strict" && words:
		writeError(w, 422, "unknown field timestamp_granularities[]")
	case s.Dialect == "broken":
		writeError(w, 500, "out of memory")
	case form == "json":
		fmt.Fprint(w, `{"text":"Hello there."}`)
	case s.Dialect == "openai":
		fmt.Fprint(w, head1+`,"segments":[`+segment+
			`}],"words":[{"word":"Hello","start":0.1,"end":0.4},{"word":"there","start":0.5,"end":0.9}]}`)
	case s.Dialect == "whisper.cpp":
		fmt.Fprint(w, head1+`,"segments":[`+segment+
			`,"words":[{"word":" Hello","start":0.1,"end":0.4,"t_dtw":-1,"probability":0.93},{"word":" there.","start":0.5,"end":0.9,"probability":0.8}]}]}`)
	case s.Dialect == "loops" && s.requests() == 1:
		fmt.Fprint(w, `{"text":" 3, 2, 3, 2, 3, 2, 3, 2"}`)
	case s.Dialect == "imagines":
		fmt.Fprint(w, `{"text":" Thank you for watching!","segments":[{"text":" Thank you for watching!","avg_logprob":-1.4,"no_speech_prob":0.9}]}`)
	default: // without words
		fmt.Fprint(w, head1+`,"segments":[`+segment+`}]}`)
	}
}

func (s *FakeOpenAI) chat(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Messages []any
		Format   struct{ Type string } `json:"response_format"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		writeError(w, 400, err.Error())
		return
	}
	s.record(in.Format.Type + "/" + fmt.Sprint(len(in.Messages)))
	switch {
	case s.Dialect == "no schema" && in.Format.Type == "json_schema", s.Dialect == "plain" && in.Format.Type != "":
		writeError(w, 400, "response_format is not supported")
		return
	case s.Dialect == "busy":
		w.Header().Set("Retry-After", "0")
		writeError(w, 429, "slow down")
		return
	}
	s.mu.Lock()
	text := s.Answers[0]
	if len(s.Answers) > 1 {
		s.Answers = s.Answers[1:]
	}
	s.mu.Unlock()
	_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": map[string]string{"role": "assistant",
		"content": text}, "finish_reason": "stop"}}})
}

func (s *FakeOpenAI) embed(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Model string
		Input []string
	}
	_ = json.NewDecoder(r.Body).Decode(&in)
	s.record(fmt.Sprint(len(in.Input)))
	var data []string
	for i := len(in.Input) - 1; i >= 0; i-- { // order is not promised
		if s.Dialect == "forgetful" && i == 0 {
			continue
		}
		data = append(data, fmt.Sprintf(`{"index":%d,"embedding":[%d,3,4]}`, i, len(in.Input[i])))
	}
	fmt.Fprintf(w, `{"object":"list","data":[%s],"model":%q}`, strings.Join(data, ","), in.Model)
}
