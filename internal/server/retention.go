package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
)

// This file removes what is no longer needed, a few times a day, in small batches between other writes.

// How long things are kept where no setting says otherwise.
const (
	sweepEvery  = 6 * time.Hour
	jobsKept    = 3 * 24 * time.Hour
	eventsKept  = 30 * 24 * time.Hour
	storiesKept = 30 * 24 * time.Hour
	spellsKept  = 400 * 24 * time.Hour // of presence: as far as reports look back
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
	_, deliveries := p.hooks.Sweep(ctx, now.Add(-eventsKept))
	_, stories := p.calls.SweepTimelines(ctx, now.Add(-storiesKept))
	_, spells := p.agents.SweepSpells(ctx, now.Add(-spellsKept))
	_, recordings := p.calls.SweepRecordings(ctx, now)
	_, facts := p.memory.DeleteExpiredFacts(ctx, now)
	answers := (&op.Pipeline{DB: p.db, Now: func() time.Time { return now }}).Sweep(ctx)
	audits := p.audit.Sweep(ctx, now.AddDate(0, 0, -p.config.AuditDays))
	return errors.Join(jobs, events, deliveries, stories, spells, recordings, facts, answers, audits, p.devices.Sweep(ctx), p.forgetOld(ctx, now))
}

// forgetOld removes transcripts, memory and messages past each organisation's own retention: messages are kept as long as recordings.
func (p *Platform) forgetOld(ctx context.Context, now time.Time) error {
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
			err = p.assistants.DeleteBefore(ctx, o.ID, before)
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
