package recording_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"soniq/internal/platform/blob"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op/optest"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/call/calltest"
)

// recordingOrg is an organisation with the service of recordings.
type recordingOrg struct{ *calltest.Org }

func newRecordingOrg(t *testing.T, d *db.DB) *recordingOrg {
	t.Helper()
	return &recordingOrg{calltest.New(t, d)}
}

// endedRecording is a call that has ended, with its recording and the recording's file.
func (o *recordingOrg) endedRecording(retention time.Duration) (callID, id, path string) {
	o.T.Helper()
	n := o.Begin(call.Inbound)
	a := call.Answer{Org: o.ID, ID: n.ID, At: o.At.Add(4 * time.Second), Ring: 4 * time.Second, Codec: "PCMU",
		By:        call.Party{Role: "agent", UserID: "usr_1", Name: "Dana", Extension: "100", Number: "100", SIPCallID: "sip-2"},
		Recording: &call.NewRecording{ID: db.NewID("rec"), Name: call.BlobName(o.ID, n.ID, o.At), Consent: "not_required", Trigger: "policy", Retention: retention}}
	o.Must(o.Calls.Answered(context.Background(), n, a))
	o.Must(o.Calls.End(context.Background(), call.Ended{New: n, AnsweredAt: a.At, At: a.At.Add(time.Minute), Recording: a.Recording.ID,
		Outcome: call.Outcome{Reason: "caller_hangup", HangupBy: "caller"}}))
	_, err := o.Files.Put(context.Background(), a.Recording.Name, strings.NewReader("RIFF audio"))
	o.Must(err)
	o.Must(o.Recordings.Recorded(context.Background(), o.ID, n.ID, a.Recording.ID, call.Audio{Duration: time.Minute, Size: 10, Channels: 2},
		nil))
	path, err = o.Files.Path(a.Recording.Name)
	o.Must(err)
	return n.ID, a.Recording.ID, path
}

// deleteRecorder is a blob store that sends the name of each deleted file to a channel.
type deleteRecorder struct {
	*blob.Dir
	removed chan string
}

func (f deleteRecorder) Delete(ctx context.Context, name string) error {
	defer func() { f.removed <- name }()
	return f.Dir.Delete(ctx, name)
}

// runJobsUntilRemoved runs the jobs of calls until both files of a recording, finished and unfinished, are removed.
func (o *recordingOrg) runJobsUntilRemoved() {
	o.T.Helper()
	files := deleteRecorder{o.Files, make(chan string, 2)}
	o.StoreRecordings(files)
	r := &job.Runner{DB: o.DB, Queue: o.Jobs, Name: call.JobQueue, Node: "node_a", Log: slog.New(slog.DiscardHandler),
		Options: job.Options{Workers: 1, PerLane: 1, Timeout: time.Minute}}
	o.Recordings.Handle(r)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	o.Must(r.Start(ctx))
	defer r.Stop(ctx)
	select {
	case <-files.removed:
	case <-ctx.Done():
		o.T.Fatal("the audio was not removed")
	}
}

func TestRecordingDelete_LeavesTombstone(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newRecordingOrg(t, d)
		callID, id, path := o.endedRecording(0)
		admin := optest.Admin(o.ID)
		if url := o.Get(callID)["recording_url"]; url == nil {
			t.Fatal("the call has no recording to delete")
		}
		if a := o.API.Do(admin, "DELETE", "/recordings/"+id, nil); a.Status != 204 {
			t.Fatalf("DELETE: %d %s", a.Status, a.Bytes)
		}
		if a := o.API.Do(admin, "DELETE", "/recordings/"+id, nil); a.Status != 204 {
			t.Errorf("DELETE again: %d %s", a.Status, a.Bytes)
		}
		calltest.Want(t, o.Get(callID), "recording_url", nil)
		calltest.Want(t, o.API.Do(admin, "GET", "/recordings/"+id, nil).Body, "status", "deleted")
		if a := o.API.Do(admin, "GET", "/recordings/"+id+"/audio", nil); a.Status != 410 {
			t.Errorf("audio of a deleted recording: %d", a.Status)
		}
		o.runJobsUntilRemoved()
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the audio is still there: %v", err)
		}
	})
}

func TestLegalHold_PreventsDeletion(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newRecordingOrg(t, d)
		_, id, _ := o.endedRecording(time.Hour)
		admin := optest.Admin(o.ID)
		a := o.API.Do(admin, "PATCH", "/recordings/"+id, map[string]any{"legal_hold": true})
		calltest.Want(t, a.Body, "legal_hold", true)
		a = o.API.Do(admin, "DELETE", "/recordings/"+id, nil)
		if a.Status != 409 || a.Body["code"] != "invalid_state" {
			t.Errorf("DELETE under legal hold: %d %s", a.Status, a.Bytes)
		}
		later := o.At.Add(48 * time.Hour)
		if n, err := o.Recordings.SweepRecordings(context.Background(), later); err != nil || n != 0 {
			t.Errorf("the sweep deleted %d under legal hold, %v", n, err)
		}
		o.API.Do(admin, "PATCH", "/recordings/"+id, map[string]any{"legal_hold": false})
		if n, err := o.Recordings.SweepRecordings(context.Background(), later); err != nil || n != 1 {
			t.Errorf("the sweep deleted %d, %v; want 1", n, err)
		}
		if a = o.API.Do(admin, "PATCH", "/recordings/"+id, map[string]any{"legal_hold": true}); a.Status != 410 {
			t.Errorf("PATCH of a deleted recording: %d", a.Status)
		}
	})
}

func TestRetention_NoneKeepsRecording(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newRecordingOrg(t, d)
		_, id, path := o.endedRecording(time.Hour)
		admin := optest.Admin(o.ID)
		a := o.API.Do(admin, "PATCH", "/recordings/"+id, map[string]any{"retention_until": nil})
		calltest.Want(t, a.Body, "retention_until", nil)
		if n, err := o.Recordings.SweepRecordings(context.Background(), o.At.AddDate(20, 0, 0)); err != nil || n != 0 {
			t.Errorf("the sweep deleted %d, %v", n, err)
		}
		a = o.API.Do(admin, "PATCH", "/recordings/"+id, map[string]any{"legal_hold": nil, "retention_until": "2001-01-01T00:00:00Z"})
		if a.Status != 422 || len(a.Body["errors"].([]any)) != 2 {
			t.Errorf("bad patch: %d %s", a.Status, a.Bytes)
		}
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	})
}
