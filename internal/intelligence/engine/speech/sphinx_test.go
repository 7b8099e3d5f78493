package speech

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"soniq/internal/intelligence/engine/enginetest"
	"soniq/internal/intelligence/transcript"
)

// needSphinx skips a test if the recogniser is not installed.
func needSphinx(t testing.TB, s *PocketSphinx) {
	t.Helper()
	err := s.Ready(context.Background())
	for late := time.Now().Add(3 * time.Minute); errors.Is(err, context.DeadlineExceeded) && time.Now().Before(late); {
		err = s.Ready(context.Background()) // a busy machine does not start it within the limit for servers
	}
	if err != nil {
		if m, ok := transcript.AsMissingDependency(err); ok {
			t.Skip(m)
		}
		t.Fatal(err)
	}
}

// newTestSphinx starts a recogniser that is closed at the end of the test.
func newTestSphinx(t testing.TB, workers int) *PocketSphinx {
	s := NewPocketSphinx([]string{os.Args[0], "asr-worker"}, workers)
	t.Cleanup(s.Close)
	needSphinx(t, s)
	return s
}

// transcribeLive sends a call to a live recogniser in small parts, as a recorder does.
func transcribeLive(t testing.TB, p *transcript.RecognizerPool, c spokenCall) []transcript.Segment {
	t.Helper()
	l, err := transcript.NewLiveTranscription(p, c.format, func() string { return "en" }, nil)
	if err != nil {
		t.Fatal(err)
	}
	for part := c.audio; len(part) > 0; {
		n := min(c.format.Rate/5*2*c.format.Channels, len(part)) // whole frames
		l.Write(part[:n])
		part = part[n:]
	}
	l.End()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // the workers run at low priority
	defer cancel()
	segments, err := l.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return segments
}

func TestPocketSphinx_WordErrorRate(t *testing.T) {
	t.Parallel()
	s := newTestSphinx(t, 1)
	pool := transcript.NewRecognizerPool(s, 1)
	t.Cleanup(pool.Close)
	words, errors := 0, 0
	for _, sc := range enginetest.Scripts(t, "d04", "d21", "d31", "d59") {
		segments := transcribeLive(t, pool, speak(t, sc, "rms", "slt"))
		for c, speaker := range []string{"caller", "agent"} {
			want := sc.Reference(speaker)
			words += len(want)
			errors += wordErrors(want, recognizedWords(segments, c))
		}
	}
	rate := float64(errors) / float64(words)
	t.Logf("word error rate %.1f %% of %d words", 100*rate, words)
	if rate > 0.35 {
		t.Errorf("word error rate is %.1f %%, want at most 35 %%", 100*rate)
	}
}

// spokenClip returns one sentence over a narrow-band line as a clip.
func spokenClip(t testing.TB, text string) transcript.Clip {
	return transcript.Clip{PCM: telephone(append(flite(t, "rms", text), make([]float64, 8000)...)), Rate: 8000, NarrowBand: true, Language: "en"}
}

func TestPocketSphinx_WordTimesAndConfidence(t *testing.T) {
	t.Parallel()
	s := newTestSphinx(t, 1)
	h, err := s.Transcribe(context.Background(), spokenClip(t, "Please send me a confirmation by email."))
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Words) < 5 || h.Text[len(h.Text)-1] != '.' || h.Confidence <= 0 || h.Confidence > 1 {
		t.Fatalf("heard %+v", h)
	}
	last := 0
	for _, w := range h.Words {
		if w.StartMS < last || w.EndMS <= w.StartMS || w.Confidence < 0 || w.Confidence > 1 {
			t.Errorf("word %+v begins before the one before it ends at %d", w, last)
		}
		last = w.EndMS
	}
	if first := h.Words[0].StartMS; first < 50 || first > 500 {
		t.Errorf("the first word begins at %d ms, want shortly after the voice does", first)
	}
}

func TestPocketSphinx_CrashedWorkerReplaced(t *testing.T) {
	t.Parallel()
	s := newTestSphinx(t, 1)
	clip := spokenClip(t, "Thank you very much.")
	for range 2 {
		for w := range s.running {
			if err := w.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_, _ = w.cmd.Process.Wait()
		}
		if _, err := s.Transcribe(context.Background(), clip); err == nil {
			t.Fatal("a dead worker answers")
		}
		h, err := s.Transcribe(context.Background(), clip)
		if err != nil || h.Text == "" {
			t.Fatalf("after the crash: %+v, %v", h, err)
		}
	}
}

func TestPocketSphinx_HangingWorkerEnded(t *testing.T) {
	t.Parallel()
	s := newTestSphinx(t, 1)
	clip := spokenClip(t, "Thank you very much.")
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if _, err := s.Transcribe(ctx, clip); err == nil {
		t.Fatal("there was an answer within a millisecond")
	}
	if h, err := s.Transcribe(context.Background(), clip); err != nil || h.Text == "" {
		t.Errorf("after it: %+v, %v", h, err)
	}
}

func TestPocketSphinx_MissingDependency(t *testing.T) {
	t.Parallel()
	greeting := filepath.Join(t.TempDir(), "greeting")
	f, err := os.Create(greeting)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := writeMessage(f, workerHello{Missing: "libpocketsphinx.so.3 was not found", Help: "apt-get install x"}, nil); err != nil {
		t.Fatal(err)
	}
	s := NewPocketSphinx([]string{"/bin/cat", greeting}, 1)
	t.Cleanup(s.Close)
	for range 2 { // the second answer is cached
		m, ok := transcript.AsMissingDependency(s.Ready(context.Background()))
		if !ok || m.Remedy != "apt-get install x" {
			t.Fatalf("missing is %+v", m)
		}
	}
	if _, ok := transcript.AsMissingDependency(errorOf(s.Transcribe(context.Background(), transcript.Clip{Language: "de"}))); !ok {
		t.Error("German is taken for English")
	}
}

func errorOf(_ transcript.Recognition, err error) error { return err }

// A worker exits when its server process is killed, even while it decodes.
func TestWorker_ExitsWithServer(t *testing.T) {
	t.Parallel()
	needSphinx(t, newTestSphinx(t, 1))
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	// The shell acts as the server: it holds the only writing end of the worker's input.
	server := exec.Command("/bin/sh", "-c",
		`mkfifo "$1/in"; "$2" asr-worker < "$1/in" & w=$!; exec 9> "$1/in"; echo $w >&3; exec 3>&-; exec sleep 60`,
		"sh", t.TempDir(), os.Args[0])
	server.ExtraFiles, server.Stdout = []*os.File{write}, nil
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	line := make([]byte, 32)
	n, err := read.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(line[:n])))
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait()
	limit := time.Now().Add(20 * time.Second)
	for processRuns(pid) {
		if time.Now().After(limit) {
			t.Fatalf("worker %d outlives its server", pid)
		}
		_, _ = read.Read(line) // returns when the worker, which holds the pipe too, has exited
	}
}

// processRuns reports whether a process runs; a zombie does not.
func processRuns(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}
