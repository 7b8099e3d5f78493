package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
)

// Retention: removes expired rows a few times a day, in small batches between other writes.

// Retention times that no setting changes.
const (
	sweepEvery  = 6 * time.Hour
	jobsKept    = 3 * 24 * time.Hour
	eventsKept  = 30 * 24 * time.Hour
	storiesKept = 30 * 24 * time.Hour
	spellsKept  = 400 * 24 * time.Hour // presence: the period of reports
)

func (s *Server) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := s.Platform.sweep(ctx, time.Now()); err != nil && ctx.Err() == nil {
			s.Platform.log.Warn("sweep not finished", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (p *Platform) sweep(ctx context.Context, now time.Time) error {
	_, jobs := job.Sweep(ctx, p.db, now.Add(-jobsKept))
	_, events := p.outbox.Sweep(ctx, now.Add(-eventsKept))
	_, deliveries := p.webhooks.DeleteBefore(ctx, now.Add(-eventsKept))
	_, stories := p.calls.SweepTimelines(ctx, now.Add(-storiesKept))
	_, spells := p.agents.SweepSpells(ctx, now.Add(-spellsKept))
	_, recordings := p.recordings.SweepRecordings(ctx, now)
	_, facts := p.memory.DeleteExpiredFacts(ctx, now)
	answers := (&op.Pipeline{DB: p.db, Clock: clock.Func(func() time.Time { return now })}).Sweep(ctx)
	audits := p.audit.Sweep(ctx, now.AddDate(0, 0, -p.config.AuditDays))
	return errors.Join(jobs, events, deliveries, stories, spells, recordings, facts, answers, audits, p.devices.Sweep(ctx),
		p.removeExpired(ctx, now))
}

// removeExpired removes transcripts, memory and messages that are older than the retention of their organisation.
// Messages are kept as long as recordings.
func (p *Platform) removeExpired(ctx context.Context, now time.Time) error {
	all, err := p.orgs.List(ctx)
	if err != nil {
		return err
	}
	for _, o := range all {
		before := now.AddDate(0, 0, -o.Transcripts.RetentionDays)
		err := untilNone(ctx, func() (int64, error) { return p.transcripts.DeleteBefore(ctx, o.ID, db.At(before)) })
		if err == nil {
			err = untilNone(ctx, func() (int64, error) { return p.memory.DeleteBefore(ctx, o.ID, before) })
		}
		if err == nil {
			err = untilNone(ctx, func() (int64, error) { return p.voicemail.DeleteTranscriptsBefore(ctx, o.ID, before) })
		}
		if err == nil {
			err = p.voiceAgents.DeleteBefore(ctx, o.ID, before)
		}
		if err == nil && o.Recording.RetentionDays > 0 {
			err = untilNone(ctx, func() (int64, error) {
				return p.voicemail.DeleteBefore(ctx, o.ID, now.AddDate(0, 0, -o.Recording.RetentionDays))
			})
		}
		if err != nil {
			return fmt.Errorf("forget what organisation %s need not keep: %w", o.ID, err)
		}
	}
	return nil
}

func untilNone(ctx context.Context, some func() (int64, error)) error {
	for {
		n, err := some()
		if err != nil || n == 0 || ctx.Err() != nil {
			return err
		}
	}
}
