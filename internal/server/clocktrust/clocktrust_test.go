package clocktrust_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/job"
	"soniq/internal/server/clocktrust"
)

// machine has the two clocks of a machine, set by a test.
type machine struct {
	wall    time.Time
	elapsed time.Duration
}

func (m *machine) read() (time.Time, time.Duration) { return m.wall, m.elapsed }

// open opens a gate as a new process does. Confirm and Run store the time.
func (m *machine) open(t *testing.T, d *db.DB, log *slog.Logger) *clocktrust.Gate {
	t.Helper()
	g, err := clocktrust.Open(t.Context(), d, t.TempDir(), m.read, log)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// https://github.com/Tr3kkR/Yuzu/issues/2348
func TestGate_ClockAheadAtStart(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var text bytes.Buffer
		log := slog.New(slog.NewTextHandler(&text, nil))
		m := &machine{wall: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		first := m.open(t, d, log)
		if err := first.MayDelete(); err != nil {
			t.Fatalf("first start: %v", err)
		}
		if _, err := first.Confirm(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.wall = m.wall.AddDate(0, 0, 420)
		second := m.open(t, d, log)
		if err := second.MayDelete(); !errors.Is(err, clocktrust.ErrDoubt) || !strings.Contains(err.Error(), "soniq admin clock confirm") {
			t.Errorf("420 days ahead: %v", err)
		}
		var again *job.Retry
		if err := second.MayJobDelete(); !errors.As(err, &again) || !again.NotCounted {
			t.Errorf("a job 420 days ahead: %v", err)
		}
		if err := m.open(t, d, log).MayDelete(); err == nil {
			t.Error("a second start trusts the clock, without the operator")
		}
		if _, err := second.Confirm(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case <-second.Again():
		default:
			t.Error("the sweeps are not told that the clock is trusted again")
		}
		if err := errors.Join(second.MayDelete(), m.open(t, d, log).MayDelete()); err != nil {
			t.Errorf("confirmed: %v", err)
		}
		if !strings.Contains(text.String(), "clock confirmed by the operator") {
			t.Errorf("log: %s", text.String())
		}
	})
}

func TestLogDeleted_HowManyOfWhat(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	clocktrust.LogDeleted(log, "events", 0)
	clocktrust.LogDeleted(log, "recordings", 12)
	if got := text.String(); strings.Contains(got, "events") || !strings.Contains(got, "what=recordings count=12") {
		t.Error(got)
	}
}
