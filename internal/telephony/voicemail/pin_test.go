package voicemail_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/telephony/voicemail"
)

func (h *fixture) checkPIN(t *testing.T, pin string, want voicemail.PINResult) voicemail.PINAttempt {
	t.Helper()
	return h.checkPINFrom(t, pin, false, want)
}

// checkPINFrom is checkPIN for a caller from outside, or for one of the organisation.
func (h *fixture) checkPINFrom(t *testing.T, pin string, outside bool, want voicemail.PINResult) voicemail.PINAttempt {
	t.Helper()
	got, err := h.CheckPIN(context.Background(), h.org, h.ada, pin, outside)
	if err != nil || got.Result != want {
		t.Fatalf("%s: %+v %v, want %v", pin, got, err, want)
	}
	return got
}

func (h *fixture) setPIN(t *testing.T, pin string) {
	t.Helper()
	if err := h.db.Tx(context.Background(), func(tx db.Querier) error {
		return h.SetPIN(context.Background(), tx, h.org, h.ada, pin)
	}); err != nil {
		t.Fatal(err)
	}
}

func TestPIN_Check(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.checkPIN(t, "2580", voicemail.PINNotSet)
		h.setPIN(t, "2580")
		h.checkPIN(t, "2580", voicemail.PINAccepted)
		h.checkPIN(t, "2581", voicemail.PINWrong)
		h.setPIN(t, "1470")
		h.checkPIN(t, "2580", voicemail.PINWrong)
		h.checkPIN(t, "1470", voicemail.PINAccepted)
		var digest string
		row := d.Read(context.Background()).QueryRow(context.Background(), `SELECT salt || digest FROM mailbox_pins WHERE org_id = $1`,
			h.org)
		if err := row.Scan(&digest); err != nil || strings.Contains(digest, "1470") {
			t.Errorf("kept %q, %v", digest, err)
		}
		h.setPIN(t, "")
		h.checkPIN(t, "1470", voicemail.PINNotSet)
	})
}

// TestPIN_OutsideCallersLockThemselvesOut proves that strangers who know a number do not lock the mailbox for its
// user's telephones, and that a new PIN ends their lock.
func TestPIN_OutsideCallersLockThemselvesOut(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.setPIN(t, "2580")
		h.checkPINFrom(t, "0001", true, voicemail.PINWrong)
		h.checkPIN(t, "0001", voicemail.PINWrong)
		h.checkPINFrom(t, "0002", true, voicemail.PINWrong)
		h.checkPINFrom(t, "0003", true, voicemail.PINLocked)
		h.checkPINFrom(t, "2580", true, voicemail.PINLocked)
		h.checkPIN(t, "0002", voicemail.PINWrong)
		h.checkPIN(t, "2580", voicemail.PINAccepted)
		h.checkPINFrom(t, "2580", true, voicemail.PINLocked)
		h.setPIN(t, "1470")
		h.checkPINFrom(t, "1470", true, voicemail.PINAccepted)
	})
}

func TestPIN_LockDurationsGrow(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.setPIN(t, "2580")
		for _, lock := range []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute} {
			h.checkPIN(t, "0001", voicemail.PINWrong)
			h.checkPIN(t, "0002", voicemail.PINWrong)
			shut := h.checkPIN(t, "0003", voicemail.PINLocked)
			left := shut.Until.Sub(time.Now().Add(h.clockOffset))
			if !shut.JustLocked || left > lock || left < lock-10*time.Second {
				t.Errorf("locked for %v (%v), want %v", left, shut.JustLocked, lock)
			}
			if again := h.checkPIN(t, "2580", voicemail.PINLocked); again.JustLocked || !again.Until.Equal(shut.Until) {
				t.Errorf("the right PIN while locked: %+v", again)
			}
			h.clockOffset += lock + time.Second
		}
		h.checkPIN(t, "2580", voicemail.PINAccepted)
		h.checkPIN(t, "0001", voicemail.PINWrong)
		h.checkPIN(t, "0002", voicemail.PINWrong)
		if shut := h.checkPIN(t, "0003", voicemail.PINLocked); shut.Until.Sub(time.Now().Add(h.clockOffset)) > time.Minute {
			t.Errorf("a right PIN did not begin anew: %+v", shut)
		}
	})
}

func TestCount_FollowsChanges(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, ctx := newFixture(t, d), context.Background()
		changes := h.bus.Subscribe(voicemail.Changed, 64)
		defer changes.Close()
		want := func(what string, told int, c voicemail.Count) {
			t.Helper()
			got, err := h.Count(ctx, d.Read(ctx), h.org, h.ada)
			if err != nil || got != c {
				t.Errorf("%s: %+v %v, want %+v", what, got, err, c)
			}
			if len(changes.C) != told {
				t.Errorf("%s: told %d times, want %d", what, len(changes.C), told)
			}
			for len(changes.C) > 0 {
				if b := (<-changes.C).(voicemail.MailboxUser); b != (voicemail.MailboxUser{Org: h.org, User: h.ada}) {
					t.Errorf("%s: told of %+v", what, b)
				}
			}
		}
		first, second := h.leaveMessage(t, h.ada), h.leaveMessage(t, "que_1")
		want("left", 1, voicemail.Count{New: 1})
		h.do("PATCH", "/voicemail/"+second, `{"assignee_id":"`+h.ada+`"}`).Want(200)
		want("assigned", 1, voicemail.Count{New: 2})
		if err := d.Tx(ctx, func(tx db.Querier) error {
			return h.SetTranscript(ctx, tx, h.org, second, voicemail.Transcription{Status: "completed", Urgency: "high"})
		}); err != nil {
			t.Fatal(err)
		}
		want("urgent", 1, voicemail.Count{New: 2, UrgentNew: 1})
		h.do("PATCH", "/voicemail/"+first, `{"status":"read"}`).Want(200)
		want("read", 1, voicemail.Count{New: 1, Old: 1, UrgentNew: 1})
		h.do("PATCH", "/voicemail/"+second, `{"assignee_id":null}`).Want(200)
		want("taken away", 1, voicemail.Count{Old: 1})
		h.do("DELETE", "/voicemail/"+first, nil).Want(204)
		want("deleted", 1, voicemail.Count{})
	})
}
