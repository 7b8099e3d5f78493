package clocktrust_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/server/clocktrust"
)

// runOnce lets a gate check and store once, as it does each minute.
func runOnce(t *testing.T, g *clocktrust.Gate, stored func() bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); g.Run(ctx) }()
	for limit := time.Now().Add(time.Minute); !stored() && time.Now().Before(limit); {
		time.Sleep(time.Millisecond) //nolint:forbidigo // polls a condition that publishes no event
	}
	cancel()
	<-done
	if !stored() {
		t.Fatal("nothing is stored")
	}
}

// The hours for which a clock that is ahead must run on include those before a restart, but not the time of another jump.
// A confirmation at one node serves the others whose clocks agree.
//
// https://github.com/Tr3kkR/Yuzu/issues/2348
func TestGate_RestartAndOtherNodes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		log := slog.New(slog.DiscardHandler)
		fact := func(name db.Fact) string { v, _ := d.Fact(t.Context(), name); return v }
		changed := func(name db.Fact) func() bool {
			before := fact(name)
			return func() bool { return fact(name) != before }
		}
		m := &machine{wall: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		runOnce(t, m.open(t, d, log), changed(db.LastMoment))
		m.wall = m.wall.AddDate(0, 0, 420)
		g := m.open(t, d, log)
		runOnce(t, g, changed(db.ClockDoubt))
		pass := func(x time.Duration) { m.wall, m.elapsed = m.wall.Add(x), m.elapsed+x }
		pass(5 * time.Hour)
		runOnce(t, g, changed(db.ClockDoubt))
		g = m.open(t, d, log)
		if err := g.MayDelete(); err == nil {
			t.Fatal("trusted after five hours")
		}
		jumped := &machine{wall: m.wall.AddDate(0, 0, 420)}
		x := jumped.open(t, d, log)
		jumped.wall, jumped.elapsed = jumped.wall.Add(2*time.Hour), 2*time.Hour
		if err := x.MayDelete(); err == nil {
			t.Error("a clock that jumped again is trusted two hours later")
		}
		other := m.open(t, d, log)
		pass(time.Hour + time.Minute)
		if err := g.MayDelete(); err != nil {
			t.Errorf("six hours with a restart: %v", err)
		}
		runOnce(t, other, changed(db.ClockDoubt))
		if got := fact(db.ClockDoubt); got != "" {
			t.Errorf("the doubt that is over is still stored: %s", got)
		}
		m.wall = m.wall.AddDate(0, 0, 420)
		if g.MayDelete() == nil || other.MayDelete() == nil {
			t.Fatal("a new jump is trusted")
		}
		if _, err := g.Confirm(t.Context()); err != nil {
			t.Fatal(err)
		}
		ahead := &machine{wall: m.wall.AddDate(0, 0, 420)}
		wrong := ahead.open(t, d, log)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		done := make(chan struct{})
		go func() { defer close(done); other.Run(ctx) }()
		runOnce(t, wrong, changed(db.ClockDoubt))
		select {
		case <-other.Again():
		case <-ctx.Done():
			t.Error("the sweeps of the other node are not told")
		}
		cancel()
		<-done
		if err := other.MayDelete(); err != nil {
			t.Errorf("confirmed at another node: %v", err)
		}
		if err := wrong.MayDelete(); err == nil {
			t.Error("a clock that does not agree with the confirmed one is trusted")
		}
	})
}
