package speech

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
	"soniq/internal/intelligence/engine/speech/sherpatest"
)

// toneTurns is the audio of the caller's telephone: two turns of tones, each of which is recognised as a word.
var toneTurns = [][2]int{{0, 1500}, {sherpatest.Low, 300}, {0, 200}, {sherpatest.High, 300}, {0, 200}, {sherpatest.Low, 300}, {0, 3000},
	{sherpatest.High, 300}, {0, 200}, {sherpatest.High, 300}, {0, 60000}}

// toneWords is the text that the tones are recognised as.
const (
	toneWords = "low high low high high"
	firstTurn = 4500 * time.Millisecond // when it is over
	bothTurns = 8 * time.Second
	wordDrift = 80 // tolerance in milliseconds between a word and its tone: twice the chunk that the model processes at once
)

// TestSherpa_OperatorModelAcrossWorkerKill transcribes calls by sherpa-onnx with a model that recognises two tones as
// words. In the second call its worker is killed between the turns; no word of either turn is lost.
func TestSherpa_OperatorModelAcrossWorkerKill(t *testing.T) {
	t.Parallel()
	model := t.TempDir()
	sherpatest.Model(t, model, nil)
	s := rig.Start(t, rig.Options{Flags: []string{"--transcriber", "sherpa:" + model, "--sherpa", sherpatest.Library(t)}})
	office := fixture.NewOrg(s)
	says, err := s.TryCommand("doctor", "--transcriber", "sherpa:"+model, "--sherpa", sherpatest.Library(t))
	if err != nil || !strings.Contains(says, "speech is recognised by sherpa-onnx 1.") || !strings.Contains(says, " MB before it listens") {
		t.Errorf("the doctor says %s (%v)", says, err)
	}
	wantToneWords(office, filepath.Base(model), "Ada", func() {})
	wantToneWords(office, filepath.Base(model), "Kay", func() {
		rig.Until(t, "a worker", 30*time.Second, func() bool { return sherpaWorker(s.PID()) != 0 })
		if err := syscall.Kill(sherpaWorker(s.PID()), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	})
}

// TestSherpa_MissingModel: without the model calls work, and their transcripts contain the reason why they are empty.
func TestSherpa_MissingModel(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	s := rig.Start(t, rig.Options{Flags: []string{"--transcriber", "sherpa:" + empty}})
	says, err := s.TryCommand("doctor", "--transcriber", "sherpa:"+empty)
	if err != nil || !strings.Contains(says, "calls will not be transcribed: there is no .onnx file in "+empty) {
		t.Errorf("the doctor says %s (%v)", says, err)
	}
	office := fixture.NewOrg(s)
	r := callWithTones(office, "Eve", func() {})
	var got struct {
		Status string
		Reason string `json:"skipped_reason"`
		Error  struct{ Message string }
	}
	rig.Until(t, "the transcript", time.Minute, func() bool {
		office.Want(200, "GET", "/calls/"+r.CallID+"/transcript", nil, &got)
		return slices.Contains([]string{"completed", "skipped", "failed"}, got.Status)
	})
	if got.Status != "skipped" || got.Reason != "no_engine" || !strings.Contains(got.Error.Message, "no .onnx file") {
		t.Errorf("the transcript is %+v", got)
	}
}

// callWithTones makes a caller play both turns, calls between in the pause, and returns the record of the call.
func callWithTones(s *fixture.Org, name string, between func()) fixture.CDR {
	s.T.Helper()
	caller, callee := s.AddUser(name), s.AddUser("Mute"+name)
	says, _ := fixture.WriteAudio(s.T, "sung", sherpatest.Melody(8000, toneTurns))
	silence, _ := fixture.WriteAudio(s.T, "silence", make([]int16, 60*8000))
	hears := s.Server.Phone(callee.SIP, rig.PhoneOptions{Say: silence, Auto: true})
	sings := s.Server.Phone(caller.SIP, rig.PhoneOptions{Say: says})
	sings.Dial(callee.Extension)
	hears.Listen(firstTurn)
	between()
	hears.Listen(bothTurns)
	sings.Do("hangup", "")
	hears.Wait("CALL_CLOSED", "")
	return s.CDR(caller.Extension)
}

// wantToneWords compares the words of a call with the tones in its recording.
func wantToneWords(s *fixture.Org, model, name string, between func()) {
	s.T.Helper()
	r := callWithTones(s, name, between)
	s.Webhook.Wait("call.transcription", time.Minute, func(e rig.Event) bool { return e.Data["call_id"] == r.CallID })
	var got struct {
		Status   string
		Engine   struct{ Name, Model, Version string }
		Segments []struct {
			Speaker string
			Words   []struct {
				Text  string
				Start int `json:"start_ms"`
				End   int `json:"end_ms"`
			}
		}
	}
	s.Want(200, "GET", "/calls/"+r.CallID+"/transcript?words=true", nil, &got)
	if got.Status != "completed" || got.Engine.Name != "sherpa-onnx" || got.Engine.Model != model+" (zipformer-ctc)" || !strings.HasPrefix(got.Engine.Version, "1.") {
		s.T.Fatalf("the transcript is %s by %+v", got.Status, got.Engine)
	}
	audio := s.RecordingAudio(s.Recording(r.CallID).ID, "")
	tones := onsets(audio.PCM[0], audio.Rate)
	var words []string
	for _, g := range got.Segments {
		for _, w := range g.Words {
			if i := len(words); i >= len(tones) || abs(w.Start-tones[i]) > wordDrift || w.End <= w.Start || g.Speaker != "caller" {
				s.T.Errorf("%q of the %s is told at %d to %d ms; the tones begin at %v", w.Text, g.Speaker, w.Start, w.End, tones)
			}
			words = append(words, w.Text)
		}
	}
	if text := strings.Join(words, " "); text != toneWords {
		s.T.Errorf("it heard %q, want %q", text, toneWords)
	}
	s.T.Logf("%s: %s; tones at %v: %+v", name, got.Engine, tones, got.Segments)
}

// onsets returns the milliseconds at which sound begins after a tenth of a second of silence.
func onsets(pcm []int16, rate int) (at []int) {
	quiet := 0
	for i, step := 0, rate/100; i+step <= len(pcm); i += step {
		if slices.Max(pcm[i:i+step]) < 1000 {
			quiet++
			continue
		}
		if quiet >= 10 {
			at = append(at, i*1000/rate)
		}
		quiet = 0
	}
	return at
}

// abs returns the absolute value.
func abs(n int) int { return max(n, -n) }

// sherpaWorker returns the process that recognises speech for a server, or 0.
func sherpaWorker(server int) int {
	found, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range found {
		b, err := os.ReadFile(stat)
		if err != nil {
			continue // it ended meanwhile
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		if fields := strings.Fields(rest); len(fields) < 2 || fields[0] == "Z" || fields[1] != strconv.Itoa(server) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(stat), "cmdline"))
		if strings.Contains(string(line), "sherpa-worker") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
			return pid
		}
	}
	return 0
}
