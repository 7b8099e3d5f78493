package sms

import (
	"context"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
)

// Limits for reassigning messages of a carrier.
const (
	reassignBatch  = 500
	graceTime      = 30 * time.Second // a carrier that is unavailable only briefly keeps its messages
	sendingTimeout = 10 * time.Minute // a message in state sending for so long was interrupted by a crash
)

// ReassignWaiting handles the messages that wait for a carrier which accepts none. Messages that another carrier
// accepts are moved to it. The others fail after four hours, or at once if the carrier no longer exists.
func (s *Service) ReassignWaiting(ctx context.Context, org, carrier string, gone bool) error {
	f := db.Where(`SELECT `+columns+` FROM messages WHERE org_id = $1 AND carrier = $2 AND status IN ('queued', 'sending')`, org, carrier)
	all, err := queryMessages(ctx, s.cfg.DB.Read(ctx), f.Page("created_at", false, nil, "", reassignBatch))
	if err != nil {
		return err
	}
	for _, m := range all {
		if err := s.reassignOrFail(ctx, m, gone); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) reassignOrFail(ctx context.Context, m Message, gone bool) error {
	age := s.cfg.Clock.Now().Sub(m.dueTime())
	t := sendAttempt{job: job.Job{Org: m.org}}
	switch {
	case m.Status == sending && s.sendingFor(m) > sendingTimeout:
		return s.failMessage(ctx, m, "unknown", "the message may have been sent: what became of it is not known")
	case m.Status == sending || !gone && age < graceTime:
		return nil
	}
	left, err := sentIDs(ctx, s.cfg.DB.Read(ctx), m)
	if err != nil {
		return err
	}
	next, tried, err := s.alternative(ctx, t, m, Result{IDs: left})
	switch {
	case err != nil:
		return err
	case next != "":
		return s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error { return s.reassign(ctx, tx, m, next, tried) })
	case gone:
		return s.failMessage(ctx, m, "carrier_rejected", "no carrier takes messages to this number any more")
	case age > maxCarrierWait:
		return s.failMessage(ctx, m, "unreachable", "the carrier could not be reached in four hours")
	}
	return nil
}

// sendingFor returns the time since the carrier was given a message. For a message of a version that did not store it, it
// returns the time since the message was due.
func (s *Service) sendingFor(m Message) time.Duration {
	if m.sendingSince.IsZero() {
		return s.cfg.Clock.Now().Sub(m.dueTime())
	}
	return s.cfg.Clock.Now().Sub(m.sendingSince.Time)
}

func (s *Service) failMessage(ctx context.Context, m Message, code, message string) error {
	return s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		return s.saveResult(ctx, tx, m, m.Status, failedResult(code, message))
	})
}
