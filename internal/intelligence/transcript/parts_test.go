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
type part struct {
	id, path string
	new      *call.NewRecording
}

const ulaw = "RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x07\x00\x02\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x08\x00data\x00\x00\x00\x00"

// record begins a recording of a call at a time, and writes its file.
func (h *house) record(t *testing.T, n call.New, revision int, id string, at time.Time, sound []byte) part {
	t.Helper()
	p := part{id: id, new: &call.NewRecording{ID: id, Name: "org_a/2026/11/" + id + ".wav", Consent: "not_required", Trigger: "api"}}
	p.path = filepath.Join(h.dir, p.new.Name)
	check(t, os.MkdirAll(filepath.Dir(p.path), 0o700))
	check(t, os.WriteFile(p.path, append([]byte(ulaw), sound...), 0o600))
	check(t, h.calls.Change(context.Background(), call.Change{Org: n.Org, ID: n.ID, Revision: revision, At: at,
		Row:        call.State{Status: call.InProgress, Stage: "agent", AnsweredAt: h.started, Recording: "recording", RecordingID: id},
		Recordings: []call.RecordingFact{{ID: id, New: p.new, Status: "recording"}}}))
	return p
}

// stop ends a recording while the call goes on.
func (h *house) stop(t *testing.T, n call.New, revision int, p part) {
	t.Helper()
	ctx := context.Background()
	check(t, h.calls.Change(ctx, call.Change{Org: n.Org, ID: n.ID, Revision: revision, At: time.Now(),
		Row:        call.State{Status: call.InProgress, Stage: "agent", AnsweredAt: h.started, Recording: "stopped", RecordingID: p.id},
		Recordings: []call.RecordingFact{{ID: p.id, Status: "processing"}}}))
	h.service.End(n.Org, n.ID)
	check(t, h.calls.Recorded(ctx, n.Org, n.ID, p.id, call.Audio{Duration: 7 * time.Second, Size: 1, SHA256: "x", SampleRate: 8000, Channels: 2},
		h.service.Recorded))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// writeAudio writes audio to a live transcription.
func hear(l *transcript.Live, sound []byte) {
	for ; len(sound) >= 320; sound = sound[320:] {
		l.Write(sound[:320])
	}
}

func (h *house) beginCall(t *testing.T, id string) call.New {
	t.Helper()
	n := call.New{Org: "org_a", ID: id, Direction: call.Inbound, Source: "inbound", From: "+14155550100", To: "+14155550199", StartedAt: h.started}
	check(t, h.calls.Begin(context.Background(), n))
	return n
}

// The recording is stopped and started again, and stopped before the end of the call. One part is transcribed live;
// of the other only the file exists.
func TestTheWordsOfAllRecordingsOfACallAreInOrder(t *testing.T) {
	for name, order := range map[string][2]bool{"first live": {true, false}, "both live": {true, true}, "from files": {false, false}} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				more := []string{"One more thing.", "Yes?", "Goodbye."}
				h := build(t, d, &teller{lines: append(append([]string{}, lines...), more...)})
				h.calls.Understand = h.service.Recorded
				n := h.beginCall(t, "call_1")
				for i, live := range order {
					p := h.record(t, n, 2*i+1, []string{"rec_1", "rec_2"}[i], h.started.Add(time.Duration(i)*20*time.Second), audio())
					if live {
						hear(h.service.Listen(n.Org, n.ID, p.path, phone), audio())
					}
					h.stop(t, n, 2*i+2, p)
				}
				if told := h.events(t, "call.transcription"); len(told) != 0 {
					t.Errorf("told of the transcript while the call goes on: %v", told)
				}
				check(t, h.calls.End(context.Background(), call.Ended{New: n, At: time.Now(), AnsweredAt: h.started, Outcome: call.Outcome{Reason: "caller_hangup"}}))
				tr, sum := h.settled(t, "call_1")
				if tr.Status != transcript.Completed || len(tr.Segments) != 6 || sum.Status != transcript.Completed {
					t.Fatalf("transcript %+v", tr)
				}
				if want := "Caller: " + lines[0] + "\nAgent: " + lines[1] + "\nCaller: " + lines[2] + " " + more[0] + "\nAgent: " + more[1] + "\nCaller: " + more[2]; tr.Text != want {
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

func TestARecordingContinuedAfterARestartIsReadFromItsBeginning(t *testing.T) {
	d := dbtest.SQLite(t)
	h := build(t, d, &teller{lines: append([]string{"heard after the restart only"}, lines...)})
	n := h.beginCall(t, "call_1")
	p := h.record(t, n, 1, "rec_1", h.started, audio())
	check(t, os.WriteFile(p.path+".part", audio(), 0o600)) // written by the previous run of the process
	l := h.service.Listen(n.Org, n.ID, p.path, phone)
	check(t, os.Remove(p.path+".part"))
	hear(l, audio()[:16000*3])
	until(t, "the first words", func() bool { return len(l.Segments()) == 1 })
	check(t, h.calls.End(context.Background(), call.Ended{New: n, At: time.Now(), AnsweredAt: h.started, Recording: p.id}))
	h.stop(t, n, 2, p)
	if tr, _ := h.settled(t, "call_1"); len(tr.Segments) != 3 || tr.Segments[0].Text != lines[0] {
		t.Errorf("transcript %+v", tr)
	}
}

func TestWordsAreStreamedWhileTheyAreSaidAndNotThoseOfAPause(t *testing.T) {
	d := dbtest.SQLite(t)
	h := build(t, d, &teller{lines: append([]string{}, lines...)})
	news := h.service.Outbox.Bus.Subscribe(event.Stream, 10)
	defer news.Close()
	n := h.beginCall(t, "call_1")
	sound := audio()
	for i := 16000 * 2; i < 16000*4; i++ { // the agent speaks in a pause: the recorder writes and taps silence
		sound[i] = 0xFF
	}
	p := h.record(t, n, 1, "rec_1", h.started, sound)
	hear(h.service.Listen(n.Org, n.ID, p.path, phone), sound)
	h.service.End(n.Org, n.ID)
	for i, want := range []string{`"speaker":"caller"`, `"start_ms":4`} {
		select {
		case m := <-news.C:
			e := m.(event.Event)
			var data struct{ Text string }
			check(t, json.Unmarshal([]byte(e.Data()), &data))
			if e.Kind != "call.transcript_segment" || e.Sequence != 0 || data.Text != lines[i] || !strings.Contains(e.Body, want) {
				t.Errorf("streamed %+v", e)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("no words were streamed")
		}
	}
	if len(news.C) != 0 {
		t.Error("words of the pause were streamed")
	}
}
