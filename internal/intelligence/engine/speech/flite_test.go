package speech

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/protocol/media/wav"
)

// newFlite returns the builtin synthesiser. It skips the test if the library is not installed.
func newFlite(t *testing.T) *Flite {
	t.Helper()
	f := NewFlite([]string{os.Args[0], "tts-worker"})
	t.Cleanup(func() { _ = f.Close() })
	if err := f.Ready(t.Context()); err != nil {
		if m, ok := transcript.AsMissingDependency(err); ok {
			t.Skip(m.Problem)
		}
		t.Fatal(err)
	}
	return f
}

func TestFliteSpeechIsRecognised(t *testing.T) {
	t.Parallel()
	f, ears := newFlite(t), NewPocketSphinx([]string{os.Args[0], "asr-worker"}, 1)
	defer ears.Close()
	if ears.Ready(t.Context()) != nil {
		t.Skip("pocketsphinx is not installed")
	}
	pcm, rate, err := f.Synthesize(t.Context(), "Please leave a message after the tone.", "", "en")
	if err != nil || rate != 16000 {
		t.Fatal(rate, err)
	}
	heard, err := ears.Transcribe(t.Context(), transcript.Clip{PCM: pcm, Rate: rate, Language: "en"})
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"please", "leave", "message"} {
		if !strings.Contains(strings.ToLower(heard.Text), word) {
			t.Errorf("heard %q, without %q", heard.Text, word)
		}
	}
}

func TestFlite_VoicesDiffer(t *testing.T) {
	t.Parallel()
	f := newFlite(t)
	said := map[string]string{}
	for _, voice := range fliteVoices {
		pcm, _, err := f.Synthesize(t.Context(), "Good morning.", voice, "")
		if _, missing := transcript.AsMissingDependency(err); missing {
			continue
		}
		if err != nil || len(pcm) < 8000 {
			t.Fatalf("%s: %d samples, %v", voice, len(pcm), err)
		}
		sum := fmt.Sprint(len(pcm), pcm[len(pcm)/2:len(pcm)/2+50])
		if other := said[sum]; other != "" {
			t.Errorf("%s sounds like %s", voice, other)
		}
		said[sum] = voice
	}
}

func TestFlite_UnusualTexts(t *testing.T) {
	t.Parallel()
	f := newFlite(t)
	for _, text := range []string{"Grüße aus Köln, René!", "$1,234,567.89", strings.Repeat("a", 200), "%s%n%x", "<speak>hi</speak>", "1" + strings.Repeat("0", 40),
		"a\x00b", "-voice rms", "…“quoted”… 12:30 +49 30 1234567", strings.Repeat("supercalifragilistic ", 5)} {
		if _, _, err := f.Synthesize(t.Context(), text, "", ""); err != nil {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	for _, text := range []string{"", "¿?", "\U0001F600"} {
		if _, _, err := f.Synthesize(t.Context(), text, "", ""); err == nil {
			t.Errorf("%q was spoken", text)
		}
	}
	if _, _, err := f.Synthesize(t.Context(), "x", "nobody", ""); !errors.Is(err, ErrUnknownVoice) {
		t.Errorf("an unknown voice: %v", err)
	}
	if _, _, err := f.Synthesize(t.Context(), "Guten Tag", "", "de"); !isMissingDependency(err) {
		t.Errorf("German: %v", err)
	}
}

func isMissingDependency(err error) bool { _, ok := transcript.AsMissingDependency(err); return ok }

func TestFlite_CrashedWorkerRestarted(t *testing.T) {
	t.Parallel()
	f := newFlite(t)
	f.mu.Lock()
	_ = f.worker.cmd.Process.Kill()
	f.mu.Unlock()
	if _, _, err := f.Synthesize(t.Context(), "one", "", ""); err == nil {
		t.Error("a dead voice spoke")
	}
	if _, _, err := f.Synthesize(t.Context(), "two", "", ""); err != nil {
		t.Errorf("after it died: %v", err)
	}
}

// countingSynthesizer counts the texts it is asked to speak.
type countingSynthesizer struct {
	mu   sync.Mutex
	said map[string]int
	wait chan struct{}
}

func (c *countingSynthesizer) Identity() string            { return "counter" }
func (c *countingSynthesizer) Ready(context.Context) error { return nil }

func (c *countingSynthesizer) Synthesize(ctx context.Context, text, _, _ string) ([]int16, int, error) {
	c.mu.Lock()
	c.said[text]++
	c.mu.Unlock()
	if c.wait != nil {
		<-c.wait
	}
	pcm := make([]int16, 16000)
	pcm[7] = 1000
	return pcm, 16000, nil
}

func TestSpeechCache_OnceForEachOrganisation(t *testing.T) {
	t.Parallel()
	v := &countingSynthesizer{said: map[string]int{}, wait: make(chan struct{})}
	dir := t.TempDir()
	s := NewSpeechCache(v, dir)
	defer s.Close()
	var all sync.WaitGroup
	paths := make([]string, 20)
	for i := range paths {
		all.Go(func() {
			var err error
			if paths[i], err = s.File(t.Context(), "org_1", "Hello", "", "en"); err != nil {
				t.Error(err)
			}
		})
	}
	close(v.wait)
	all.Wait()
	for _, p := range paths {
		if p != paths[0] {
			t.Errorf("%s and %s", p, paths[0])
		}
	}
	other, err := s.File(t.Context(), "org_2", " Hello ", "", "en")
	if err != nil || filepath.Dir(other) == filepath.Dir(paths[0]) || v.said["Hello"] != 2 {
		t.Errorf("spoken %d times; %s, %v", v.said["Hello"], other, err)
	}
	w, err := wav.Read(paths[0])
	if err != nil || w.Rate != 16000 || len(w.PCM[0]) != 16000 || w.PCM[0][7] != 8000 {
		t.Errorf("%v: %d Hz", err, w.Rate)
	}
	again := NewSpeechCache(v, dir)
	if p, err := again.File(t.Context(), "org_1", "Hello", "", "en"); err != nil || p != paths[0] || v.said["Hello"] != 2 {
		t.Errorf("after a restart: %s, %v, spoken %d times", p, err, v.said["Hello"])
	}
	if err := again.DeleteOrganization("org_1"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(paths[0]); !os.IsNotExist(err) {
		t.Errorf("a forgotten organisation's speech is there: %v", err)
	}
}

// TestSpeechCache_OnceBesideEndingSynthesis asks for texts whose synthesis ends at that moment.
func TestSpeechCache_OnceBesideEndingSynthesis(t *testing.T) {
	t.Parallel()
	v := &countingSynthesizer{said: map[string]int{}}
	s := NewSpeechCache(v, t.TempDir())
	defer s.Close()
	for i := range 100 {
		text := fmt.Sprintf("text %d", i)
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if _, err := s.File(t.Context(), "org_1", text, "", "en"); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := v.said[text]; n != 1 {
			t.Fatalf("%s is spoken %d times", text, n)
		}
	}
}

func TestSpeechCache_OldestPruned(t *testing.T) {
	t.Parallel()
	s := NewSpeechCache(&countingSynthesizer{said: map[string]int{}}, t.TempDir())
	defer s.Close()
	s.maxBytes = 320_000 // ten files
	var first string
	for i := range 30 {
		p, err := s.File(t.Context(), "org_1", fmt.Sprint("text ", i), "", "")
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = p
		}
		at := time.Now().Add(time.Duration(i-100) * time.Second)
		if err := os.Chtimes(p, at, at); err != nil {
			t.Fatal(err)
		}
		if size := prune(s.dir, 1<<40); size > s.maxBytes {
			t.Fatalf("%d bytes are kept", size)
		}
	}
	if _, err := os.Stat(first); !os.IsNotExist(err) {
		t.Error("the oldest is still there")
	}
}

func TestSpeechCache_InvalidInputRefused(t *testing.T) {
	t.Parallel()
	s := NewSpeechCache(&countingSynthesizer{said: map[string]int{}}, t.TempDir())
	for _, c := range []struct{ org, text string }{{"org_1", ""}, {"org_1", strings.Repeat("x", MaxSpeechBytes+1)}, {"../up", "x"}, {"", "x"}} {
		if _, err := s.File(t.Context(), c.org, c.text, "", ""); err == nil {
			t.Errorf("%q of %q was spoken", c.text, c.org)
		}
	}
	if _, err := NewSpeechCache(nil, t.TempDir()).File(t.Context(), "org_1", "x", "", ""); !isMissingDependency(err) {
		t.Errorf("switched off: %v", err)
	}
}

func TestOpenAISynthesizer(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.wav")
	if err := wav.Write(path, wav.Audio{Rate: 24000, PCM: [][]int16{{1, 2, 3}}}, wav.PCM16); err != nil {
		t.Fatal(err)
	}
	body, _ := os.ReadFile(path)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in map[string]string
		_ = json.NewDecoder(r.Body).Decode(&in)
		switch {
		case r.URL.Path != "/v1/audio/speech" || r.Header.Get("Authorization") != "Bearer k" || in["model"] != "tts-1" || in["response_format"] != "wav":
			http.Error(w, "what?", 404)
		case in["voice"] == "nobody":
			http.Error(w, `{"error":{"message":"no such voice"}}`, 400)
		case in["input"] == "mp3":
			_, _ = w.Write([]byte("ID3\x04"))
		default:
			_, _ = w.Write(body)
		}
	}))
	defer server.Close()
	v, err := NewSynthesizer(engine.Config{Engine: server.URL, Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	if pcm, rate, err := v.Synthesize(t.Context(), "Hallo", "", "de"); err != nil || rate != 24000 || fmt.Sprint(pcm) != "[1 2 3]" {
		t.Errorf("%v %d %v", pcm, rate, err)
	}
	if _, _, err := v.Synthesize(t.Context(), "Hallo", "nobody", ""); !errors.Is(err, ErrUnknownVoice) {
		t.Errorf("an unknown voice: %v", err)
	}
	if _, _, err := v.Synthesize(t.Context(), "mp3", "", ""); !errors.Is(err, errNotWAV) {
		t.Errorf("another format: %v", err)
	}
}

func FuzzReadWAV(f *testing.F) {
	f.Add([]byte("RIFF\xff\xff\xff\xffWAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00data\xff\xff\xff\xff\x01\x00"))
	f.Fuzz(func(t *testing.T, b []byte) { _, _, _ = readWAV(b) })
}
