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

// Reset of a sandbox: ends calls and jobs, removes files and rows.

// keptTables lists the tables that a reset leaves unchanged: credentials, webhook configuration and the audit log.
// Event sequence numbers continue to rise, so that readers of the event stream miss no events.
var kept = []string{"api_keys", "oauth_grants", "oauth_tokens", "oauth_codes", "oauth_consents", "account_logins",
	"account_recovery", "account_sessions", "account_links", "users", "invitations", "devices", "registrations", "browser_tokens", "provisionings", "agents", "webhooks", "webhook_versions",
	"audit", "event_sequences"}

// partlyClearedTables lists the tables of which only some rows are removed; see clearPartly.
var partly = []string{"jobs", "idempotency", "extensions"}

// Time limits of a reset for the end of calls and of background jobs.
const (
	callsLimit = 20 * time.Second
	jobsLimit  = 20 * time.Second
	jobsPoll   = 20 * time.Millisecond
	maxRounds  = 5
)

// A Resetter holds the functions of other packages that a reset calls. All fields are set before the first request.
type Resetter struct {
	DB  *db.DB
	Now func() time.Time
	// SuspendOrg refuses new calls of an organisation until lift is called. ok is false if they are suspended
	// already.
	Bar func(org string) (lift func(), ok bool)
	// EndCalls ends the calls of an organisation. It returns their number once the ends are written to the database.
	HangUp func(ctx context.Context, org string) (ended int, err error)
	// StopJobs removes waiting background jobs, cancels running ones, and returns how many still run.
	Quiet func(ctx context.Context, org string) (running int, err error)
	// RemoveFiles removes the files of an organisation.
	Files func(org string) error
	// RepairRows makes the remaining rows consistent, in the transaction after the last row was removed. It returns
	// how many rows it removed.
	Mend func(ctx context.Context, tx db.Querier, org string) (gone int64, err error)
	// ClearCaches drops the cached data of an organisation.
	Forget func(org string)
}

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
	lift, ok := s.Bar(org)
	if !ok {
		return nil, op.State("a reset is under way", "resetting")
	}
	defer lift()
	c := Cleared{}
	for range maxRounds {
		n, err := s.round(ctx, org, &c)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			break
		}
	}
	c.ResetAt = db.At(s.Now())
	return op.OK(c)
}

// removeOnce ends calls and jobs and removes all rows once. Rows that were written meanwhile are left for the next
// round.
func (s *Service) round(ctx context.Context, org string, c *Cleared) (gone int64, err error) {
	if err := s.hush(ctx, org, c); err != nil {
		return 0, err
	}
	if err := s.Files(org); err != nil {
		return 0, fmt.Errorf("remove files: %w", err)
	}
	tables, err := s.DB.TenantTables(ctx)
	if err != nil {
		return 0, err
	}
	tables = slices.DeleteFunc(tables, func(t db.TenantTable) bool { return slices.Contains(kept, t.Name) || slices.Contains(partly, t.Name) })
	gone, err = s.DB.EraseTenant(ctx, org, tables)
	c.Removed += gone
	if err != nil {
		return gone, err
	}
	err = s.DB.Tx(ctx, func(tx db.Querier) error {
		more, err := s.Mend(ctx, tx, org)
		if err != nil {
			return err
		}
		some, err := clearPartly(ctx, tx, org)
		more += some
		db.OnCommit(tx, func() { gone, c.Removed = gone+more, c.Removed+more })
		return err
	})
	s.Forget(org)
	return gone, err
}

// endCallsAndJobs ends calls and background jobs.
func (s *Service) hush(ctx context.Context, org string, c *Cleared) error {
	calling, cancel := context.WithTimeout(ctx, callsLimit)
	defer cancel()
	ended, err := s.HangUp(calling, org)
	c.CallsEnded += ended
	if err != nil {
		return busy(ctx, err, "calls are still ending; repeat this in a moment")
	}
	var elsewhere int
	if err := s.DB.Read(ctx).QueryRow(ctx, `SELECT count(*) FROM calls WHERE org_id = $1 AND ended_at IS NULL`, org).Scan(&elsewhere); err != nil {
		return err
	}
	if elsewhere > 0 {
		return op.State("another server carries calls of this organisation; end them first", "busy")
	}
	return s.quiet(ctx, org)
}

// waitForJobs waits until no background job runs.
func (s *Service) quiet(ctx context.Context, org string) error {
	limited, cancel := context.WithTimeout(ctx, jobsLimit)
	defer cancel()
	tick := time.NewTicker(jobsPoll)
	defer tick.Stop()
	for {
		running, err := s.Quiet(limited, org)
		if err == nil && running == 0 {
			return nil
		}
		if err != nil {
			return busy(ctx, err, "work in the background does not end; repeat this in a moment")
		}
		select {
		case <-tick.C:
		case <-limited.Done():
			return busy(ctx, limited.Err(), "work in the background does not end; repeat this in a moment")
		}
	}
}

// timeoutError returns a "busy" error if the time limit was exceeded. If the request itself ended, it returns err.
func busy(ctx context.Context, err error, why string) error {
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return op.State(why, "busy")
	}
	return err
}

// clearPartly removes stored idempotent answers, except those of requests in progress, and the extensions without a
// user.
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
