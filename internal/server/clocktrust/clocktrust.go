// Package clocktrust is the gate of all deletion by age: it allows none while the clock is not trusted. It stores the last trusted time in
// the database.
package clocktrust

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/server/datadir"
)

const (
	// storeEvery is the interval at which the clock is checked and the last trusted time is stored.
	storeEvery = time.Minute
	// retryAfter is the interval at which a job that deletes by age is tried again.
	retryAfter = time.Hour
)

// ErrDoubt is returned while the clock is not trusted.
var ErrDoubt = errors.New("nothing is deleted by age")

// Gate allows deletion by age while the clock is trusted. It is safe for concurrent use.
type Gate struct {
	db    *db.DB
	log   *slog.Logger
	trust *clock.Trust
	again chan struct{}

	doubtStored bool // for Run: the database has a doubt that is over once the clock is trusted
}

// Open returns a gate with the last trusted time of earlier processes. A database from before it was stored has none; the node's last sign
// of life then takes its place.
func Open(ctx context.Context, d *db.DB, data string, read clock.Reading, log *slog.Logger) (*Gate, error) {
	last, err := lastMoment(ctx, d, data)
	if err != nil {
		return nil, err
	}
	g := &Gate{db: d, log: log, trust: clock.NewTrust(last, read), again: make(chan struct{}, 1)}
	return g, g.resume(ctx)
}

// resume continues the doubt of an earlier process.
func (g *Gate) resume(ctx context.Context) error {
	text, err := g.db.Fact(ctx, db.ClockDoubt)
	if err != nil {
		return err
	}
	g.doubtStored = text != ""
	var at, ranOn int64
	if n, _ := fmt.Sscan(text, &at, &ranOn); n == 2 {
		g.trust.Resume(time.UnixMicro(at), time.Duration(ranOn)*time.Microsecond)
	}
	return nil
}

func lastMoment(ctx context.Context, d *db.DB, data string) (time.Time, error) {
	text, err := d.Fact(ctx, db.LastMoment)
	if err != nil {
		return time.Time{}, err
	}
	micros, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return datadir.LastAlive(data), nil
	}
	return time.UnixMicro(micros), nil
}

// Now returns the time for deletion by age, or an ErrDoubt with the remedy if the clock is not trusted.
func (g *Gate) Now() (time.Time, error) {
	now, doubt := g.trust.Check()
	if doubt == nil {
		return now, nil
	}
	return now, fmt.Errorf("%w: the clock says %s, %d days ahead of the expected time; set it right, or confirm it with: "+
		"soniq admin clock confirm; else it is trusted in %s", ErrDoubt, doubt.Now.UTC().Format(time.RFC3339),
		doubt.Now.Sub(doubt.Expected)/(24*time.Hour), strings.TrimSuffix(doubt.Remains.Round(time.Minute).String(), "0s"))
}

// MayDelete returns an error while nothing may be deleted by age. It is a clock.DeletionGate.
func (g *Gate) MayDelete() error {
	_, err := g.Now()
	return err
}

// MayJobDelete is MayDelete for jobs: a job that returns its error is tried again later.
func (g *Gate) MayJobDelete() error {
	if err := g.MayDelete(); err != nil {
		return &job.Retry{Cause: err, After: retryAfter, NotCounted: true}
	}
	return nil
}

// Again receives a value when the clock is trusted again. It has one receiver.
func (g *Gate) Again() <-chan struct{} { return g.again }

func (g *Gate) wake() {
	select {
	case g.again <- struct{}{}:
	default:
	}
}

// Run stores the last trusted time every minute until the context ends, or for how long a clock that is not trusted has run on. It logs
// when the clock is no longer trusted.
func (g *Gate) Run(ctx context.Context) {
	tick := clock.NewTicker(storeEvery)
	defer tick.Stop()
	for doubted := false; ; {
		doubted = g.check(ctx, doubted)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (g *Gate) check(ctx context.Context, before bool) (doubted bool) {
	err := g.MayDelete()
	if err != nil && !g.learn(ctx) {
		if !before {
			g.log.Error("the clock is not trusted", "err", err)
		}
		g.storeDoubt(ctx)
		return true
	}
	if before || err != nil {
		g.log.Warn("the clock is trusted again")
		g.wake()
	}
	if err := errors.Join(g.store(ctx), g.clearDoubt(ctx)); err != nil && ctx.Err() == nil {
		g.log.Warn("last trusted time not stored", "err", err)
	}
	return false
}

// learn trusts the clock if another node of the database trusts the same time, because the operator confirmed it there. It reports whether
// it does.
func (g *Gate) learn(ctx context.Context) bool {
	text, err := g.db.Fact(ctx, db.LastMoment)
	if err != nil {
		return false
	}
	micros, err := strconv.ParseInt(text, 10, 64)
	return err == nil && g.trust.Learn(time.UnixMicro(micros))
}

// storeDoubt stores for how long a clock that is not trusted has run on, so that a restart does not begin anew.
func (g *Gate) storeDoubt(ctx context.Context) {
	_, doubt := g.trust.Check()
	if doubt == nil {
		return
	}
	text := fmt.Sprint(doubt.Now.UnixMicro(), doubt.RanOn.Microseconds())
	if err := g.db.SetFact(ctx, db.ClockDoubt, text); err != nil && ctx.Err() == nil {
		g.log.Warn("doubt of the clock not stored", "err", err)
	}
	g.doubtStored = true
}

// clearDoubt deletes a stored doubt, so that the next one begins anew.
func (g *Gate) clearDoubt(ctx context.Context) error {
	if !g.doubtStored {
		return nil
	}
	if err := g.db.SetFact(ctx, db.ClockDoubt, ""); err != nil {
		return err
	}
	g.doubtStored = false
	return nil
}

func (g *Gate) store(ctx context.Context) error {
	return g.db.SetFact(ctx, db.LastMoment, strconv.FormatInt(g.trust.Last().UnixMicro(), 10))
}

// Confirm trusts the clock as it is now, and returns its time.
func (g *Gate) Confirm(ctx context.Context) (time.Time, error) {
	now := g.trust.Confirm()
	if err := g.store(ctx); err != nil {
		return now, err
	}
	g.log.Warn("clock confirmed by the operator", "time", now)
	g.wake()
	return now, nil
}

// LogDeleted logs how many of what were deleted by age. It logs nothing for 0.
func LogDeleted(log *slog.Logger, what string, n int64) {
	if n > 0 {
		log.Info("deleted after its retention", "what", what, "count", n)
	}
}
