package transcript_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"soniq/internal/intelligence/transcript"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
	"soniq/internal/telephony/call"
)

// recordingPart is one recording of a call.
type recordingPart struct {
	id, path string
	new      *call.NewRecording
}

const wavHeader = "RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x07\x00\x02\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x08\x00data\x00\x00\x00\x00"

// record begins a recording of a call at a time, and writes its file.
func (h *fixture) record(t *testing.T, n call.New, revision int, id string, at time.Time, sound []byte) recordingPart {
	t.Helper()
	p := recordingPart{id: id, new: &call.NewRecording{ID: id, Name: "org_a/2026/11/" + id + ".wav", Consent: "not_required", Trigger: "api"}}
	p.path = filepath.Join(h.dir, p.new.Name)
	must(t, os.MkdirAll(filepath.Dir(p.path), 0o700))
	must(t, os.WriteFile(p.path, append([]byte(wavHeader), sound...), 0o600))
	must(t, h.calls.Change(context.Background(), call.Change{Org: n.Org, ID: n.ID, Revision: revision, At: at,
		Row:        call.State{Status: call.InProgress, Stage: "agent", AnsweredAt: h.started, Recording: "recording", RecordingID: id},
		Recordings: []call.RecordingChange{{ID: id, New: p.new, Status: "recording"}}}))
	return p
}

// stop ends a recording while the call goes on.
func (h *fixture) stop(t *testing.T, n call.New, revision int, p recordingPart) {
	t.Helper()
	ctx := context.Background()
	must(t, h.calls.Change(ctx, call.Change{Org: n.Org, ID: n.ID, Revision: revision, At: time.Now(),
		Row:        call.State{Status: call.InProgress, Stage: "agent", AnsweredAt: h.started, Recording: "stopped", RecordingID: p.id},
		Recordings: []call.RecordingChange{{ID: p.id, Status: "processing"}}}))
	h.service.EndLive(n.Org, n.ID)
	must(t, h.recordings.Recorded(ctx, n.Org, n.ID, p.id, call.Audio{Duration: 7 * time.Second, Size: 1, SHA256: "x", SampleRate: 8000,
		Channels: 2},
		h.service.OnRecordingsReady))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// writeAudio writes audio to a live transcription.
func writeAudio(l *transcript.LiveTranscription, sound []byte) {
	for ; len(sound) >= 320; sound = sound[320:] {
		l.Write(sound[:320])
	}
}

func (h *fixture) beginCall(t *testing.T, id string) call.New {
	t.Helper()
	n := call.New{Org: "org_a", ID: id, Direction: call.Inbound, Source: "inbound", From: "+14155550100", To: "+14155550199", StartedAt: h.started}
	must(t, h.calls.Begin(context.Background(), n))
	return n
}

// recordingObserver passes finished recordings to the service, as the server does.
type recordingObserver struct{ *transcript.Service }

func (o recordingObserver) RecordingsReady(ctx context.Context, tx db.Querier, org, callID string, ok bool) error {
	return o.OnRecordingsReady(ctx, tx, org, callID, ok)
}

func (recordingObserver) RecordingDeleted(context.Context, db.Querier, string, string, string) error {
	return nil
}

// The recording is stopped and started again, and stopped before the end of the call. One part is transcribed live;
// of the other only the file exists.
func TestProcess_SeveralRecordingsInOrder(t *testing.T) {
	for name, order := range map[string][2]bool{"first live": {true, false}, "both live": {true, true}, "from files": {false, false}} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				more := []string{"One more thing.", "Yes?", "Goodbye."}
				h := newFixture(t, d, &scriptedRecognizer{lines: append(append([]string{}, scriptLines...), more...)})
				h.recordings.Observe(recordingObserver{h.service})
				n := h.beginCall(t, "call_1")
				for i, live := range order {
					p := h.record(t, n, 2*i+1, []string{"rec_1", "rec_2"}[i], h.started.Add(time.Duration(i)*20*time.Second),
						threeUtterances())
					if live {
						writeAudio(h.service.StartLive(n.Org, n.ID, p.path, muLawStereo), threeUtterances())
					}
					h.stop(t, n, 2*i+2, p)
				}
				if told := h.events(t, "call.transcription"); len(told) != 0 {
					t.Errorf("told of the transcript while the call goes on: %v", told)
				}
				must(t, h.calls.End(context.Background(), call.Ended{New: n, At: time.Now(), AnsweredAt: h.started,
					Outcome: call.Outcome{Reason: "caller_hangup"}}))
				tr, sum := h.waitProcessed(t, "call_1")
				if tr.Status != transcript.Completed || len(tr.Segments) != 6 || sum.Status != transcript.Completed {
					t.Fatalf("transcript %+v", tr)
				}
				if want := "Caller: " + scriptLines[0] + "\nAgent: " + scriptLines[1] + "\nCaller: " + scriptLines[2] + " " + more[0] + "\nAgent: " + more[1] + "\nCaller: " + more[2]; tr.Text != want {
					t.Errorf("text is %q, want %q", tr.Text, want)
				}
				if s := tr.Segments[3]; s.Index != 3 || s.StartMS < 20_000 || s.StartMS > 22_500 {
					t.Errorf("the second recording begins with %+v", s)
				}
				h.announcedOnce(t, sum)
			})
		})
	}
}

func TestProcess_RecordingContinuedAfterRestart(t *testing.T) {
	d := dbtest.SQLite(t)
	h := newFixture(t, d, &scriptedRecognizer{lines: append([]string{"heard after the restart only"}, scriptLines...)})
	n := h.beginCall(t, "call_1")
	p := h.record(t, n, 1, "rec_1", h.started, threeUtterances())
	must(t, os.WriteFile(p.path+".part", threeUtterances(), 0o600)) // written by the previous run of the process
	l := h.service.StartLive(n.Org, n.ID, p.path, muLawStereo)
	must(t, os.Remove(p.path+".part"))
	writeAudio(l, threeUtterances()[:16000*3])
	waitUntil(t, "the first words", func() bool { return len(l.Segments()) == 1 })
	must(t, h.calls.End(context.Background(), call.Ended{New: n, At: time.Now(), AnsweredAt: h.started, Recording: p.id}))
	h.stop(t, n, 2, p)
	if tr, _ := h.waitProcessed(t, "call_1"); len(tr.Segments) != 3 || tr.Segments[0].Text != scriptLines[0] {
		t.Errorf("transcript %+v", tr)
	}
}

func TestStartLive_StreamsSegmentsExceptPauses(t *testing.T) {
	d := dbtest.SQLite(t)
	h := newFixture(t, d, &scriptedRecognizer{lines: append([]string{}, scriptLines...)})
	news := h.bus.Subscribe(event.Stream, 10)
	defer news.Close()
	n := h.beginCall(t, "call_1")
	sound := threeUtterances()
	for i := 16000 * 2; i < 16000*4; i++ { // the agent speaks in a pause: the recorder writes and taps silence
		sound[i] = 0xFF
	}
	p := h.record(t, n, 1, "rec_1", h.started, sound)
	writeAudio(h.service.StartLive(n.Org, n.ID, p.path, muLawStereo), sound)
	h.service.EndLive(n.Org, n.ID)
	for i, want := range []string{`"speaker":"caller"`, `"start_ms":4`} {
		select {
		case m := <-news.C:
			e := m.(event.Event)
			var data struct{ Text string }
			must(t, json.Unmarshal([]byte(e.Data()), &data))
			if e.Kind != "call.transcript_segment" || e.Sequence != 0 || data.Text != scriptLines[i] || !strings.Contains(e.Body, want) {
				t.Errorf("streamed %+v", e)
			}
		case <-time.After(2 * time.Minute):
			t.Fatal("no words were streamed")
		}
	}
	if len(news.C) != 0 {
		t.Error("words of the pause were streamed")
	}
}
