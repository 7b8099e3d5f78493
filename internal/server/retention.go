package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
	"soniq/internal/server/clocktrust"
)

// Retention: removes expired rows a few times a day, in small batches between other writes.

// Retention times that no setting changes.
const (
	sweepEvery    = 6 * time.Hour
	jobsKept      = 3 * 24 * time.Hour
	eventsKept    = 30 * 24 * time.Hour
	timelinesKept = 30 * 24 * time.Hour
	spellsKept    = 400 * 24 * time.Hour // presence: the period of reports
)

func (s *Server) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := s.Platform.sweep(ctx); err != nil && ctx.Err() == nil {
			s.Platform.log.Warn("sweep not finished", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-s.Platform.clock.Again():
		case <-tick.C:
		}
	}
}

// sweepTask deletes one kind of expired rows and returns their number.
type sweepTask struct {
	what   string
	remove func(ctx context.Context) (int64, error)
}

// sweep deletes everything that is older than its retention, and logs how many of what. It deletes nothing while the clock is not trusted.
func (p *Platform) sweep(ctx context.Context) error {
	now, err := p.clock.Now()
	if err != nil {
		return err
	}
	var failed []error
	for _, t := range p.sweepTasks(now) {
		n, err := t.remove(ctx)
		p.logRemoved(t.what, n)
		failed = append(failed, err)
	}
	return errors.Join(append(failed, p.removeExpired(ctx, now))...)
}

func (p *Platform) logRemoved(what string, n int64) { clocktrust.LogDeleted(p.log, what, n) }

// sweepTasks returns the tasks whose retention is the same for all organisations.
func (p *Platform) sweepTasks(now time.Time) []sweepTask {
	before := func(kept time.Duration, remove func(context.Context, time.Time) (int64, error)) func(context.Context) (int64, error) {
		return func(ctx context.Context) (int64, error) { return remove(ctx, now.Add(-kept)) }
	}
	answers := &op.Pipeline{DB: p.db, Clock: clock.Func(func() time.Time { return now })}
	return []sweepTask{
		{"jobs", func(ctx context.Context) (int64, error) { return job.Sweep(ctx, p.db, now.Add(-jobsKept)) }},
		{"events", before(eventsKept, p.outbox.Sweep)},
		{"webhook deliveries", before(eventsKept, p.webhooks.DeleteBefore)},
		{"timelines", before(timelinesKept, p.calls.SweepTimelines)},
		{"presence spells", before(spellsKept, p.agents.SweepSpells)},
		{"recordings", func(ctx context.Context) (int64, error) {
			n, err := p.recordings.SweepRecordings(ctx, now)
			return int64(n), err
		}},
		{"memory facts", before(0, p.memory.DeleteExpiredFacts)},
		{"idempotent answers", answers.Sweep},
		{"audit lines", func(ctx context.Context) (int64, error) {
			return p.audit.Sweep(ctx, now.AddDate(0, 0, -p.config.AuditDays))
		}},
		{"registrations", p.devices.Sweep},
	}
}

// removeExpired removes transcripts, memory and messages that are older than the retention of their organisation.
// Messages are kept as long as recordings.
func (p *Platform) removeExpired(ctx context.Context, now time.Time) error {
	all, err := p.orgs.List(ctx)
	if err != nil {
		return err
	}
	total := map[string]int64{}
	for _, o := range all {
		for _, t := range p.orgSweepTasks(o, now) {
			var n int64
			n, err = untilNone(ctx, t.remove)
			if total[t.what] += n; err != nil {
				err = fmt.Errorf("delete what organisation %s need not keep: %w", o.ID, err)
				break
			}
		}
		if err != nil {
			break
		}
	}
	for what, n := range total {
		p.logRemoved(what, n)
	}
	return err
}

// orgSweepTasks returns the tasks of one organisation.
func (p *Platform) orgSweepTasks(o org.Organization, now time.Time) []sweepTask {
	before := now.AddDate(0, 0, -o.Transcripts.RetentionDays)
	all := []sweepTask{
		{"transcripts", func(ctx context.Context) (int64, error) { return p.transcripts.DeleteBefore(ctx, o.ID, db.At(before)) }},
		{"calls in memory", func(ctx context.Context) (int64, error) { return p.memory.DeleteBefore(ctx, o.ID, before) }},
		{"voicemail transcripts", func(ctx context.Context) (int64, error) {
			return p.voicemail.DeleteTranscriptsBefore(ctx, o.ID, before)
		}},
		{"voice agent turns", func(ctx context.Context) (int64, error) { return p.voiceAgents.DeleteBefore(ctx, o.ID, before) }},
	}
	if o.Recording.RetentionDays > 0 {
		all = append(all, sweepTask{"voicemail messages", func(ctx context.Context) (int64, error) {
			return p.voicemail.DeleteBefore(ctx, o.ID, now.AddDate(0, 0, -o.Recording.RetentionDays))
		}})
	}
	return all
}

// untilNone repeats a deletion until it finds no row, and returns the number of all rows.
func untilNone(ctx context.Context, some func(context.Context) (int64, error)) (total int64, err error) {
	for {
		n, err := some(ctx)
		if total += n; err != nil || n == 0 || ctx.Err() != nil {
			return total, err
		}
	}
}

// confirmClock trusts the clock as it is now.
func (p *Platform) confirmClock(ctx context.Context, _ struct{}) (string, hostChange, error) {
	now, err := p.clock.Confirm(ctx)
	return "the clock is trusted: " + now.UTC().Format(time.RFC3339), hostChange{}, err
}
