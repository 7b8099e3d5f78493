package voicemail_test

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/telephony/voicemail"
)

// hasAudio reports whether the file of a message exists.
func (h *fixture) hasAudio(id string) bool {
	_, _, err := h.files.Open(context.Background(), voicemail.BlobName(h.org, id, time.Now()))
	return !errors.Is(err, fs.ErrNotExist)
}

func TestRetention_DeletesMessagesAndTranscripts(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, ctx := newFixture(t, d), context.Background()
		id := h.leaveMessage(t, h.ada)
		if err := d.Tx(ctx, func(tx db.Querier) error {
			return h.SetTranscript(ctx, tx, h.org, id, voicemail.Transcription{Status: "completed", Text: "call me",
				Summary: "Bob wants a call."})
		}); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			before time.Time
			words  int64
			gone   int64
		}{{time.Now().Add(-time.Hour), 0, 0}, {time.Now().Add(time.Hour), 1, 1}, {time.Now().Add(time.Hour), 0, 0}} {
			words, err := h.DeleteTranscriptsBefore(ctx, h.org, c.before)
			if err != nil || words != c.words {
				t.Errorf("words of %d, %v; want %d", words, err, c.words)
			}
			gone, err := h.DeleteBefore(ctx, h.org, c.before)
			if err != nil || gone != c.gone || h.hasAudio(id) != (gone == 0 && c.words == 0 && c.before.Before(time.Now())) {
				t.Errorf("%d deleted, %v; want %d", gone, err, c.gone)
			}
		}
		if a := h.do("GET", "/voicemail/"+id, nil).Want(200); a.Text("status") != "deleted" || a.At("transcript") != nil || a.At("ai_summary") != nil {
			t.Errorf("left: %s", a.Bytes)
		}
	})
}

// Erasing a call deletes its messages and their audio.
func TestEraseCall_DeletesMessageAndAudio(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, ctx := newFixture(t, d), context.Background()
		id := h.leaveMessage(t, h.ada)
		call := h.do("GET", "/voicemail/"+id, nil).Want(200).Text("call_id")
		if !h.hasAudio(id) {
			t.Fatal("no sound")
		}
		if err := d.Tx(ctx, func(tx db.Querier) error { return h.EraseCall(ctx, tx, h.org, call) }); err != nil {
			t.Fatal(err)
		}
		if h.hasAudio(id) {
			t.Error("the sound is still there")
		}
		if a := h.do("GET", "/voicemail/"+id, nil).Want(200); a.Text("status") != "deleted" || a.Text("from_number") != "anonymous" {
			t.Errorf("left: %s", a.Bytes)
		}
	})
}

// Drafts of a crashed process become messages, once, if they are long enough. Those that cannot be written are tried again.
func TestRecover_Drafts(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, ctx := newFixture(t, d), context.Background()
		h.do("DELETE", "/voicemail/"+h.leaveMessage(t, h.ada), nil).Want(204)
		call := h.leaveMessage(t, h.ada)
		call = h.do("GET", "/voicemail/"+call, nil).Text("call_id")
		var drafts []voicemail.Draft
		for range 3 {
			drafts = append(drafts, voicemail.Draft{Org: h.org, ID: db.NewID("vm"), CallID: call, Mailbox: h.ada, Begun: time.Now()})
			if err := h.BeginDraft(ctx, drafts[len(drafts)-1]); err != nil {
				t.Fatal(err)
			}
		}
		lengths := map[string]time.Duration{}
		for i, d := range drafts {
			path, err := h.files.Path(d.Blob())
			if err != nil {
				t.Fatal(err)
			}
			lengths[path] = []time.Duration{5 * time.Second, time.Second, 0}[i]
		}
		finish := func(path string) (voicemail.AudioFile, error) {
			return voicemail.AudioFile{Duration: lengths[path], Size: 1, SHA256: "x"}, nil
		}
		if err := h.Recover(ctx); err != nil {
			t.Fatal(err)
		}
		full := func(string) (voicemail.AudioFile, error) { return voicemail.AudioFile{}, syscall.ENOSPC }
		if n, err := h.FinishDrafts(ctx, full); n != 0 || !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("%d kept on a full disk, %v", n, err)
		}
		if n, err := h.FinishDrafts(ctx, finish); n != 1 || err != nil {
			t.Fatalf("%d kept, %v", n, err)
		}
		if n, err := h.FinishDrafts(ctx, finish); n != 0 || err != nil {
			t.Fatalf("%d kept again, %v", n, err)
		}
		if a := h.do("GET", "/voicemail/"+drafts[0].ID, nil).Want(200); a.At("duration_seconds") != 5.0 || a.Text("from_number") != "+442079460001" {
			t.Errorf("kept: %s", a.Bytes)
		}
		h.do("GET", "/voicemail/"+drafts[1].ID, nil).Want(404)
	})
}
