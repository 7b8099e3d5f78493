package speech

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/internal/intelligence/engine/speech/sherpatest"
	"soniq/internal/intelligence/transcript"
)

// newTestSherpa starts a recogniser with the library that is installed; it ends with the test.
func newTestSherpa(t testing.TB, dir string, n int) *Sherpa {
	s := NewSherpa([]string{os.Args[0], "sherpa-worker"}, dir, sherpatest.Library(t), n)
	t.Cleanup(s.Close)
	return s
}

// newToneRecognizer starts a recogniser whose model understands tones.
func newToneRecognizer(t testing.TB, n int) *Sherpa {
	dir := t.TempDir()
	sherpatest.Model(t, dir, nil)
	return newTestSherpa(t, dir, n)
}

// Melody of most tests, which is recognised as three words, and the start and end of its tones in milliseconds.
var (
	lowHighLow  = [][2]int{{0, 400}, {sherpatest.Low, 300}, {0, 200}, {sherpatest.High, 300}, {0, 200}, {sherpatest.Low, 300}, {0, 400}}
	melodyTimes = [][2]int{{400, 700}, {900, 1200}, {1400, 1700}}
)

func melodyClip(rate int) transcript.Clip {
	return transcript.Clip{PCM: sherpatest.Melody(rate, lowHighLow), Rate: rate, NarrowBand: rate == 8000, Language: "en"}
}

func TestSherpa_ZipformerCTC(t *testing.T) {
	t.Parallel()
	s := newToneRecognizer(t, 1)
	for _, rate := range []int{8000, 16000} {
		h, err := s.Transcribe(context.Background(), melodyClip(rate))
		if err != nil {
			t.Fatal(err)
		}
		if h.Text != "Low. High. Low." || len(h.Words) != 3 {
			t.Fatalf("at %d per second it heard %+v", rate, h)
		}
		for i, w := range h.Words {
			if from, to := melodyTimes[i][0], melodyTimes[i][1]; w.StartMS < from-40 || w.StartMS > from+60 || w.EndMS <= w.StartMS ||
				w.EndMS > to+60 {
				t.Errorf("%q was played from %d to %d ms and is told from %d to %d", w.Text, from, to, w.StartMS, w.EndMS)
			}
			if w.Confidence != 0 {
				t.Errorf("%q has the confidence %v, but models of this family have none", w.Text, w.Confidence)
			}
		}
	}
	e := s.Engine()
	if e.Name != "sherpa-onnx" || e.Model != filepath.Base(s.dir)+" (zipformer-ctc)" || !strings.HasPrefix(e.Version, "1.13.") {
		t.Errorf("the engine calls itself %+v", e)
	}
	if s.Memory() < 10<<20 {
		t.Errorf("a worker with the library takes %d bytes", s.Memory())
	}
}

func TestSherpa_OtherFamilies(t *testing.T) {
	t.Parallel()
	for family, write := range map[string]func(testing.TB, string){"transducer": sherpatest.Transducer, "nemo-ctc": sherpatest.NeMo, "wenet-ctc": sherpatest.WeNet} {
		t.Run(family, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir)
			s := newTestSherpa(t, dir, 1)
			h, err := s.Transcribe(context.Background(), melodyClip(8000))
			if err != nil || h.Text != "Low. High. Low." || len(h.Words) != 3 {
				t.Fatalf("heard %+v, %v", h, err)
			}
			for i, w := range h.Words {
				if from := melodyTimes[i][0]; w.StartMS < from-60 || w.StartMS > from+60 {
					t.Errorf("%q was played at %d ms and is told at %d", w.Text, from, w.StartMS)
				}
				if sure := w.Confidence > 0.5 && w.Confidence <= 1; sure != (family == "transducer") {
					t.Errorf("%q has the confidence %v; transducers tell it, others do not", w.Text, w.Confidence)
				}
			}
			if !strings.HasSuffix(s.Engine().Model, "("+family+")") {
				t.Errorf("the engine calls itself %+v", s.Engine())
			}
		})
	}
}

// The library exits the process if the model fails on a clip. That clip gives an error, and the next gets a new
// process.
func TestSherpa_FailingModelIsError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sherpatest.NeMo(t, dir) // expects its input transposed, but is labelled as a Zipformer
	replaceInFile(t, filepath.Join(dir, "model.onnx"), "EncDecCTCModelBPE", "zipformer2_ctc\x00\x00\x00")
	s := newTestSherpa(t, dir, 1)
	for range 2 {
		if err := s.Ready(context.Background()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Transcribe(context.Background(), melodyClip(8000)); err == nil ||
			!strings.Contains(err.Error(), "recognise 2100 ms of speech: EOF: ") {
			t.Fatalf("the error is %v", err)
		}
	}
}

func TestSherpa_WorkersBoundedAndNice(t *testing.T) {
	t.Parallel()
	s := newToneRecognizer(t, 2)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if h, err := s.Transcribe(context.Background(), melodyClip(8000)); err != nil || len(h.Words) != 3 {
				t.Errorf("heard %+v, %v", h, err)
			}
		})
	}
	all.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.running) == 0 || len(s.running) > 2 {
		t.Errorf("%d workers run, at most 2 may", len(s.running))
	}
	for w := range s.running {
		for _, task := range globFiles(t, "/proc/"+strconv.Itoa(w.cmd.Process.Pid)+"/task/*/stat") {
			b, err := os.ReadFile(task)
			if err != nil {
				continue // a thread that ended meanwhile
			}
			fields := strings.Fields(string(b[strings.LastIndex(string(b), ")")+1:]))
			if fields[16] != strconv.Itoa(workerNice) {
				t.Errorf("a thread of a worker has the niceness %s", fields[16])
			}
		}
	}
}

func globFiles(t testing.TB, pattern string) []string {
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: %v", pattern, err)
	}
	return found
}

func TestSherpa_CrashedWorkerReplaced(t *testing.T) {
	t.Parallel()
	s := newToneRecognizer(t, 1)
	if err := s.Ready(context.Background()); err != nil {
		t.Fatal(err)
	}
	for w := range s.running {
		if err := w.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_, _ = w.cmd.Process.Wait()
	}
	if _, err := s.Transcribe(context.Background(), melodyClip(8000)); err == nil {
		t.Fatal("a dead worker answers")
	}
	if h, err := s.Transcribe(context.Background(), melodyClip(8000)); err != nil || h.Text != "Low. High. Low." {
		t.Fatalf("after the crash: %+v, %v", h, err)
	}
}

func TestSherpa_LowLatencyWorker(t *testing.T) {
	t.Parallel()
	s := newToneRecognizer(t, 1)
	brisk := s.LowLatency()
	t.Cleanup(brisk.Close)
	w, err := s.acquire(context.Background()) // the only worker is busy
	if err != nil {
		t.Fatal(err)
	}
	defer s.release(w)
	if h, err := brisk.Transcribe(context.Background(), melodyClip(8000)); err != nil || h.Text != "Low. High. Low." {
		t.Fatalf("heard %+v, %v", h, err)
	}
}

// The worker starts before the caller speaks, because models may take long to load.
func TestPhraseRecognizer_LoadsModelBeforeSpeech(t *testing.T) {
	t.Parallel()
	s := newToneRecognizer(t, 1).LowLatency()
	t.Cleanup(s.Close)
	ear := NewPhraseRecognizer(s)
	pcm := make(chan []int16)
	heard := make(chan int, 1)
	go func() {
		i, ok := ear.Recognize(context.Background(), []string{"low", "high"}, "en", pcm)
		if !ok {
			i = -1
		}
		heard <- i
	}()
	pcm <- make([]int16, 160)
	select {
	case w := <-s.idle: // it starts before anything is said
		s.idle <- w
	case <-time.After(time.Minute):
		t.Fatal("no worker comes up")
	}
	all := sherpatest.Melody(8000, [][2]int{{0, 500}, {sherpatest.High, 400}, {0, 1500}})
	for len(all) >= 160 && len(heard) == 0 {
		select {
		case pcm <- all[:160]:
			all = all[160:]
		case i := <-heard:
			heard <- i
		}
	}
	if i := <-heard; i != 1 {
		t.Errorf("the caller said the second of two, and was taken for %d", i)
	}
}

// A model or library that cannot be used gives an error with the cause and a remedy.
func TestSherpa_MissingDependency(t *testing.T) {
	t.Parallel()
	good := func(t *testing.T, dir string) { sherpatest.Model(t, dir, nil) }
	for _, c := range []struct {
		name, library, want string
		fill                func(t *testing.T, dir string)
	}{
		{"no folder", "", "cannot be read", func(t *testing.T, dir string) { removeFile(t, dir) }},
		{"no model", "", "no .onnx file", func(*testing.T, string) {}},
		{"no tokens", "", "no tokens.txt", func(t *testing.T, dir string) { good(t, dir); removeFile(t, filepath.Join(dir, "tokens.txt")) }},
		{"two models", "", "parts of different models", func(t *testing.T, dir string) { good(t, dir); copyFile(t, dir, "model.onnx", "other.onnx") }},
		{"family", "", `model_type "bert"`, func(t *testing.T, dir string) { sherpatest.Model(t, dir, map[string]string{"model_type": "bert"}) }},
		{"streaming", "", "streaming", func(t *testing.T, dir string) { sherpatest.Model(t, dir, map[string]string{"decode_chunk_len": "32"}) }},
		{"no ONNX", "", "is no ONNX model", func(t *testing.T, dir string) { good(t, dir); truncateFile(t, filepath.Join(dir, "model.onnx"), 100) }},
		{"no library", t.TempDir(), "libsherpa-onnx-c-api.so was not found", good},
		{"library without its runtime", libraryWithoutRuntime(t), "libonnxruntime.so", good},
		{"library that is none", invalidLibrary(t), "could not be loaded", good},
		{"damaged", "", "No Op registered for MutMal", func(t *testing.T, dir string) {
			good(t, dir)
			replaceInFile(t, filepath.Join(dir, "model.onnx"), "MatMul", "MutMal")
		}},
		// The library exits its process when it reads this file.
		{"crash", "", "<blk> or <eps> or <blank>", func(t *testing.T, dir string) {
			good(t, dir)
			if err := os.WriteFile(filepath.Join(dir, "tokens.txt"), []byte("low 1\nhigh 2\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c.fill(t, dir)
			library := c.library
			if library == "" {
				library = sherpatest.Library(t)
			}
			s := NewSherpa([]string{os.Args[0], "sherpa-worker"}, dir, library, 1)
			t.Cleanup(s.Close)
			m, ok := transcript.AsMissingDependency(s.Ready(context.Background()))
			if !ok || !strings.Contains(m.Problem, c.want) || m.Remedy == "" {
				t.Fatalf("it says %+v, want %q", m, c.want)
			}
			t.Log(m)
		})
	}
}

func TestCheckSherpaVersion_UnknownRefused(t *testing.T) {
	t.Parallel()
	m, ok := transcript.AsMissingDependency(checkSherpaVersion("2.0.0"))
	if !ok || !strings.Contains(m.Problem, "2.0.0 is not known") || !strings.Contains(m.Problem, "1.13.8") {
		t.Errorf("it says %+v", m)
	}
}

func removeFile(t *testing.T, path string) {
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, dir, from, to string) {
	b, err := os.ReadFile(filepath.Join(dir, from))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, to), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// truncateFile keeps the first n bytes of a file.
func truncateFile(t *testing.T, path string, n int64) {
	if err := os.Truncate(path, n); err != nil {
		t.Fatal(err)
	}
}

// replaceInFile replaces a text in a file by another of the same length.
func replaceInFile(t *testing.T, path, from, to string) {
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, bytes.ReplaceAll(b, []byte(from), []byte(to)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// libraryWithoutRuntime returns a folder that contains the library but not libonnxruntime.so.
func libraryWithoutRuntime(t *testing.T) string {
	dir := t.TempDir()
	b, err := os.ReadFile(filepath.Join(sherpatest.Library(t), sherpaFile))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, sherpaFile), b, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// invalidLibrary returns a folder with a text file that has the name of the library.
func invalidLibrary(t *testing.T) string {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, sherpaFile), []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
