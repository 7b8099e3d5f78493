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

func (h *house) try(t *testing.T, pin string, want voicemail.Door) voicemail.Try {
	t.Helper()
	got, err := h.TryPIN(context.Background(), h.org, h.ada, pin)
	if err != nil || got.Door != want {
		t.Fatalf("%s: %+v %v, want %v", pin, got, err, want)
	}
	return got
}

func (h *house) setPIN(t *testing.T, pin string) {
	t.Helper()
	if err := h.d.Tx(context.Background(), func(tx db.Querier) error { return h.SetPIN(context.Background(), tx, h.org, h.ada, pin) }); err != nil {
		t.Fatal(err)
	}
}

func TestAPINOpensAMailbox(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := build(t, d)
		h.try(t, "2580", voicemail.NoPIN)
		h.setPIN(t, "2580")
		h.try(t, "2580", voicemail.Opened)
		h.try(t, "2581", voicemail.Wrong)
		h.setPIN(t, "1470")
		h.try(t, "2580", voicemail.Wrong)
		h.try(t, "1470", voicemail.Opened)
		var digest string
		row := d.Read(context.Background()).QueryRow(context.Background(), `SELECT salt || digest FROM mailbox_pins WHERE org_id = $1`, h.org)
		if err := row.Scan(&digest); err != nil || strings.Contains(digest, "1470") {
			t.Errorf("kept %q, %v", digest, err)
		}
		h.setPIN(t, "")
		h.try(t, "1470", voicemail.NoPIN)
	})
}

func TestWrongPINsLockAMailboxLongerEachTime(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := build(t, d)
		h.setPIN(t, "2580")
		for _, lock := range []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute} {
			h.try(t, "0001", voicemail.Wrong)
			h.try(t, "0002", voicemail.Wrong)
			shut := h.try(t, "0003", voicemail.Locked)
			left := shut.Until.Sub(time.Now().Add(h.ahead))
			if !shut.Shut || left > lock || left < lock-10*time.Second {
				t.Errorf("locked for %v (%v), want %v", left, shut.Shut, lock)
			}
			if again := h.try(t, "2580", voicemail.Locked); again.Shut || !again.Until.Equal(shut.Until) {
				t.Errorf("the right PIN while locked: %+v", again)
			}
			h.ahead += lock + time.Second
		}
		h.try(t, "2580", voicemail.Opened)
		h.try(t, "0001", voicemail.Wrong)
		h.try(t, "0002", voicemail.Wrong)
		if shut := h.try(t, "0003", voicemail.Locked); shut.Until.Sub(time.Now().Add(h.ahead)) > time.Minute {
			t.Errorf("a right PIN did not begin anew: %+v", shut)
		}
	})
}

func TestCountsFollowMessages(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, ctx := build(t, d), context.Background()
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
				if b := (<-changes.C).(voicemail.Box); b != (voicemail.Box{Org: h.org, User: h.ada}) {
					t.Errorf("%s: told of %+v", what, b)
				}
			}
		}
		first, second := h.leave(t, h.ada), h.leave(t, "que_1")
		want("left", 1, voicemail.Count{New: 1})
		h.do("PATCH", "/voicemail/"+second, `{"assignee_id":"`+h.ada+`"}`).Want(200)
		want("assigned", 1, voicemail.Count{New: 2})
		if err := d.Tx(ctx, func(tx db.Querier) error {
			return h.Heard(ctx, tx, h.org, second, voicemail.Words{Status: "completed", Urgency: "high"})
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
