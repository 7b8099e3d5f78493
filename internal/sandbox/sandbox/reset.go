package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Reset of a sandbox: ends its calls, stops its jobs and removes its rows.

// keptTables are the tables that a reset does not touch: credentials, configured receivers and the audit log. Event numbers
// continue to rise, so that a stream that is followed misses no event.
var keptTables = []string{"api_keys", "oauth_grants", "oauth_tokens", "oauth_codes", "oauth_consents", "account_logins",
	"account_recovery", "account_sessions", "account_links", "users", "user_preferences", "invitations", "devices", "registrations",
	"browser_tokens", "provisionings", "agents", "webhooks", "webhook_versions", "audit", "event_sequences"}

// partlyClearedTables are the tables from which only some rows are removed; see clearPartly.
var partlyClearedTables = []string{"jobs", "idempotency", "extensions"}

// Time limits of a reset for ending calls and for stopping jobs.
const (
	callsLimit = 20 * time.Second
	jobsLimit  = 20 * time.Second
	jobsPoll   = 20 * time.Millisecond
	maxRounds  = 5
)

// Cleared is the result of a reset.
type Cleared struct {
	ResetAt    db.Time `json:"reset_at"`
	CallsEnded int     `json:"calls_ended" doc:"Calls that were in progress and were hung up"`
	Removed    int64   `json:"records_removed" doc:"Rows of the database, of whatever kind"`
}

const resetAbout = "Calls in progress are hung up, as POST /calls/{id}/end does; then calls, recordings and their files, transcripts, memory, messages, " +
	"contacts, connected systems, voicemail, queues, flows, numbers, trunks, sounds, counts, events, deliveries and stored idempotent answers are removed. " +
	"What you log in with and what you configured to receive stays, so that a test suite can reset between runs without being set up again: " +
	"the organisation and its settings, API keys, users with their telephones' credentials, webhook endpoints, and the audit log. " +
	"No call can begin meanwhile. It may be repeated at any time."

// Reset empties the sandbox of the organisation.
func (s *Service) Reset(ctx context.Context, _ *struct{}) (*op.Out[Cleared], error) {
	org := access.Org(ctx)
	lift, ok := s.cfg.Suspensions.Suspend(org)
	if !ok {
		return nil, op.State("a reset is under way", "resetting")
	}
	defer lift()
	c := Cleared{}
	for range maxRounds {
		n, err := s.removeOnce(ctx, org, &c)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			break
		}
	}
	c.ResetAt = db.At(s.cfg.Clock.Now())
	return op.OK(c)
}

// removeOnce ends and removes everything once. Rows that are written meanwhile are left for the next round.
func (s *Service) removeOnce(ctx context.Context, org string, c *Cleared) (gone int64, err error) {
	if err := s.endCallsAndJobs(ctx, org, c); err != nil {
		return 0, err
	}
	if err := s.cfg.Data.RemoveFiles(org); err != nil {
		return 0, fmt.Errorf("remove files: %w", err)
	}
	tables, err := s.cfg.DB.TenantTables(ctx)
	if err != nil {
		return 0, err
	}
	tables = slices.DeleteFunc(tables, func(t db.TenantTable) bool {
		return slices.Contains(keptTables, t.Name) || slices.Contains(partlyClearedTables, t.Name)
	})
	gone, err = s.cfg.DB.EraseTenant(ctx, org, tables)
	c.Removed += gone
	if err != nil {
		return gone, err
	}
	err = s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		more, err := s.cfg.Data.RepairRows(ctx, tx, org)
		if err != nil {
			return err
		}
		some, err := clearPartly(ctx, tx, org)
		more += some
		db.OnCommit(tx, func() { gone, c.Removed = gone+more, c.Removed+more })
		return err
	})
	s.cfg.Data.ClearCaches(org)
	return gone, err
}

// endCallsAndJobs ends calls and stops jobs.
func (s *Service) endCallsAndJobs(ctx context.Context, org string, c *Cleared) error {
	calling, cancel := context.WithTimeout(ctx, callsLimit)
	defer cancel()
	ended, err := s.cfg.Calls.EndOrg(calling, org)
	c.CallsEnded += ended
	if err != nil {
		return timeoutError(ctx, err, "calls are still ending; repeat this in a moment")
	}
	var elsewhere int
	if err := s.cfg.DB.Read(ctx).QueryRow(ctx, `SELECT count(*) FROM calls WHERE org_id = $1 AND ended_at IS NULL`,
		org).Scan(&elsewhere); err != nil {
		return err
	}
	if elsewhere > 0 {
		return op.State("another server carries calls of this organisation; end them first", "busy")
	}
	return s.waitForJobs(ctx, org)
}

// waitForJobs waits until no job of the organisation runs.
func (s *Service) waitForJobs(ctx context.Context, org string) error {
	limited, cancel := context.WithTimeout(ctx, jobsLimit)
	defer cancel()
	tick := time.NewTicker(jobsPoll)
	defer tick.Stop()
	for {
		running, err := s.cfg.Jobs.StopJobs(limited, org)
		if err == nil && running == 0 {
			return nil
		}
		if err != nil {
			return timeoutError(ctx, err, "work in the background does not end; repeat this in a moment")
		}
		select {
		case <-tick.C:
		case <-limited.Done():
			return timeoutError(ctx, limited.Err(), "work in the background does not end; repeat this in a moment")
		}
	}
}

// timeoutError returns an error that the time limit was reached, unless the context of the request ended.
func timeoutError(ctx context.Context, err error, why string) error {
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return op.State(why, "busy")
	}
	return err
}

// clearPartly removes stored answers of finished requests, and extensions without a user.
func clearPartly(ctx context.Context, tx db.Querier, org string) (gone int64, err error) {
	for _, q := range []string{
		`DELETE FROM idempotency WHERE org_id = $1 AND state = 'done'`,
		`DELETE FROM extensions WHERE org_id = $1 AND owner_id NOT IN (SELECT id FROM users WHERE org_id = $1)`,
	} {
		r, err := tx.Exec(ctx, q, org)
		if err != nil {
			return gone, fmt.Errorf("clear the rest: %w", err)
		}
		n, err := r.RowsAffected()
		if err != nil {
			return gone, err
		}
		gone += n
	}
	return gone, nil
}
