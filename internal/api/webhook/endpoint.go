package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
)

// endpoint is a stored webhook.
type endpoint struct {
	Org, ID, URL      string
	Events            []string
	Description       string
	Status            Status
	Holding           bool // deliveries are held and not sent
	Secret            []byte
	SecretHint        string
	PreviousSecret    []byte
	PreviousUntil     db.Time
	Filters           Filters
	Ordered           bool
	Timing            string
	SignRecordingURLs bool
	TimeoutSeconds    int
	Headers           []byte // sealed JSON object
	Failures          int
	FailingSince      db.Time
	LastSuccess       db.Time
	LastFailure       db.Time
	DisabledReason    db.Null
	CreatedAt         db.Time
	UpdatedAt         db.Time
	Holder            access.Holder // who subscribed
	User              string        // who made it: only events of calls that the user sees are delivered; empty: of all
	ForcedFailures    int           // attempts that fail without being sent; sandbox only
}

const endpointColumns = `org_id, id, url, events, description, status, holding, secret, secret_hint, previous_secret,
	previous_until, filters, ordered, call_ended_timing, signed_recording_urls, timeout_seconds, headers,
	consecutive_failures, failing_since, last_success_at, last_failure_at, disabled_reason, created_at, updated_at, fail_times, holder,
	user_id`

type scanner interface{ Scan(...any) error }

func scanEndpoint(row scanner) (*endpoint, error) {
	var e endpoint
	var events db.JSON[[]string]
	var filters db.JSON[Filters]
	var holder db.JSON[access.Holder]
	var user db.Null
	err := row.Scan(&e.Org, &e.ID, &e.URL, &events, &e.Description, &e.Status, &e.Holding, &e.Secret, &e.SecretHint,
		&e.PreviousSecret, &e.PreviousUntil, &filters, &e.Ordered, &e.Timing, &e.SignRecordingURLs, &e.TimeoutSeconds, &e.Headers,
		&e.Failures, &e.FailingSince, &e.LastSuccess, &e.LastFailure, &e.DisabledReason, &e.CreatedAt, &e.UpdatedAt,
		&e.ForcedFailures, &holder, &user)
	e.Events, e.Filters, e.Holder, e.User = events.V, filters.V, holder.V, string(user)
	return &e, err
}

func insertEndpoint(ctx context.Context, tx db.Querier, e *endpoint) error {
	const q = `INSERT INTO webhooks (org_id, id, url, events, description, status, holding, secret, secret_hint, filters,
			ordered, call_ended_timing, signed_recording_urls, timeout_seconds, headers, consecutive_failures, created_at, updated_at,
			holder, user_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, 0, $16, $17, $18, $19)`
	_, err := tx.Exec(ctx, q, e.Org, e.ID, e.URL, db.AsJSON(e.Events), e.Description, string(e.Status), e.Holding, e.Secret,
		e.SecretHint, db.AsJSON(e.Filters), e.Ordered, e.Timing, e.SignRecordingURLs, e.TimeoutSeconds, e.Headers, e.CreatedAt, e.UpdatedAt,
		db.AsJSON(e.Holder), db.Null(e.User))
	if err != nil {
		return fmt.Errorf("insert webhook: %w", err)
	}
	return bumpVersion(ctx, tx, e.Org)
}

// updateEndpoint writes the settings of its owner.
func updateEndpoint(ctx context.Context, tx db.Querier, e *endpoint) error {
	const q = `UPDATE webhooks SET url = $3, events = $4, description = $5, status = $6, holding = $7, secret = $8,
			secret_hint = $9, previous_secret = $10, previous_until = $11, filters = $12, ordered = $13, call_ended_timing = $14,
			signed_recording_urls = $15, timeout_seconds = $16, headers = $17, consecutive_failures = $18, failing_since = $19,
			disabled_reason = $20, updated_at = $21, holder = $22
		WHERE org_id = $1 AND id = $2`
	_, err := tx.Exec(ctx, q, e.Org, e.ID, e.URL, db.AsJSON(e.Events), e.Description, string(e.Status), e.Holding, e.Secret,
		e.SecretHint, e.PreviousSecret, e.PreviousUntil, db.AsJSON(e.Filters), e.Ordered, e.Timing, e.SignRecordingURLs,
		e.TimeoutSeconds, e.Headers, e.Failures, e.FailingSince, e.DisabledReason, e.UpdatedAt, db.AsJSON(e.Holder))
	if err != nil {
		return fmt.Errorf("update webhook: %w", err)
	}
	return bumpVersion(ctx, tx, e.Org)
}

// bumpVersion makes every node reload the organisation's endpoints.
func bumpVersion(ctx context.Context, tx db.Querier, org string) error {
	const q = `INSERT INTO webhook_versions (org_id, version) VALUES ($1, $2)
		ON CONFLICT (org_id) DO UPDATE SET version = $2`
	if _, err := tx.Exec(ctx, q, org, db.NewID("v")); err != nil {
		return fmt.Errorf("write version of webhooks: %w", err)
	}
	return nil
}

func getEndpoint(ctx context.Context, q db.Querier, org, id string) (*endpoint, error) {
	const text = `SELECT ` + endpointColumns + ` FROM webhooks WHERE org_id = $1 AND id = $2 AND deleted_at IS NULL`
	return scanEndpoint(q.QueryRow(ctx, text, org, id))
}

func listEndpoints(ctx context.Context, q db.Querier, f *db.Filter) ([]*endpoint, error) {
	text, args := f.SQL()
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("list webhooks: %w", err)
	}
	defer rows.Close()
	var all []*endpoint
	for rows.Next() {
		e, err := scanEndpoint(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, rows.Err()
}

func endpointFilter(org string) *db.Filter {
	return db.Where(`SELECT `+endpointColumns+` FROM webhooks WHERE org_id = $1`, org).And("deleted_at IS NULL")
}

func countEndpoints(ctx context.Context, q db.Querier, org string) (n int, err error) {
	const text = `SELECT count(*) FROM webhooks WHERE org_id = $1 AND deleted_at IS NULL`
	err = q.QueryRow(ctx, text, org).Scan(&n)
	return n, err
}

// deleteEndpoint marks an endpoint as deleted and discards its deliveries. The row is kept for its old deliveries.
func deleteEndpoint(ctx context.Context, tx db.Querier, org, id string, now db.Time) error {
	const gone = `UPDATE webhooks SET deleted_at = $3, status = 'disabled' WHERE org_id = $1 AND id = $2`
	if _, err := tx.Exec(ctx, gone, org, id, now); err != nil {
		return fmt.Errorf("delete webhook: %w", err)
	}
	const open = `UPDATE webhook_deliveries SET status = 'discarded', finished_at = $3, next_attempt_at = NULL, held = FALSE
		WHERE org_id = $1 AND webhook_id = $2 AND finished_at IS NULL`
	if _, err := tx.Exec(ctx, open, org, id, now); err != nil {
		return fmt.Errorf("discard deliveries: %w", err)
	}
	return bumpVersion(ctx, tx, org)
}

// setStatus sets a status that results from the endpoint's behaviour. From then on deliveries are held. It returns
// the number of consecutive failed events, or db.ErrNone if the status is unchanged.
func setStatus(ctx context.Context, tx db.Querier, org, id string, to Status, reason string) (failures int, err error) {
	const q = `UPDATE webhooks SET status = $3, holding = TRUE, disabled_reason = $4 WHERE org_id = $1 AND id = $2 AND status <> $3
		RETURNING consecutive_failures`
	if err := tx.QueryRow(ctx, q, org, id, string(to), db.Null(reason)).Scan(&failures); err != nil {
		return 0, fmt.Errorf("set status of webhook: %w", err)
	}
	return failures, bumpVersion(ctx, tx, org)
}

// endHolding ends the holding of new deliveries, because all held ones are enqueued.
func endHolding(ctx context.Context, tx db.Querier, org, id string) error {
	const q = `UPDATE webhooks SET holding = FALSE WHERE org_id = $1 AND id = $2`
	if _, err := tx.Exec(ctx, q, org, id); err != nil {
		return fmt.Errorf("end holding of webhook: %w", err)
	}
	return bumpVersion(ctx, tx, org)
}

// endpointCache holds an organisation's endpoints in memory.
type endpointCache struct {
	version   string
	endpoints []*endpoint
	checkedAt atomic.Int64 // time of the last version check, Unix nanoseconds
}

// cacheFresh is how long a delivery uses a cached endpoint without a version check.
const cacheFresh = 100 * time.Millisecond

// endpoints returns an organisation's endpoints. The caller must not change them. It costs one primary key read if
// nothing has changed; an organisation that never had an endpoint has no row there.
func (s *Service) endpoints(ctx context.Context, q db.Querier, org string) ([]*endpoint, error) {
	const text = `SELECT version FROM webhook_versions WHERE org_id = $1`
	var version string
	if err := q.QueryRow(ctx, text, org).Scan(&version); err != nil {
		if db.IsNone(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("read version of webhooks: %w", err)
	}
	now := s.cfg.Clock.Now().UnixNano()
	if v, ok := s.endpointCaches.Load(org); ok && v.(*endpointCache).version == version {
		k := v.(*endpointCache)
		k.checkedAt.Store(now)
		return k.endpoints, nil
	}
	all, err := listEndpoints(ctx, q, endpointFilter(org))
	if err != nil {
		return nil, err
	}
	for _, e := range all {
		s.seedHealth(e)
	}
	k := &endpointCache{version: version, endpoints: all}
	k.checkedAt.Store(now)
	s.endpointCaches.Store(org, k)
	return all, nil
}

// endpoint returns an endpoint; nil if there is none.
func (s *Service) endpoint(ctx context.Context, q db.Querier, org, id string) (*endpoint, error) {
	all, err := s.endpoints(ctx, q, org)
	return endpointByID(all, id), err
}

// cachedEndpoint returns an endpoint without a database read if the version was checked within cacheFresh.
func (s *Service) cachedEndpoint(ctx context.Context, org, id string) (*endpoint, error) {
	if v, ok := s.endpointCaches.Load(org); ok {
		if k := v.(*endpointCache); s.cfg.Clock.Now().UnixNano()-k.checkedAt.Load() < int64(cacheFresh) {
			return endpointByID(k.endpoints, id), nil
		}
	}
	return s.endpoint(ctx, s.cfg.DB.Read(ctx), org, id)
}

func endpointByID(all []*endpoint, id string) *endpoint {
	for _, e := range all {
		if e.ID == id {
			return e
		}
	}
	return nil
}

func sealAAD(org, id, column string) []byte { return []byte(org + "|webhooks|" + id + "|" + column) }

// sealHeaders encrypts the owner's headers; nil if there are none.
func (s *Service) sealHeaders(org, id string, h map[string]string) ([]byte, error) {
	if len(h) == 0 {
		return nil, nil
	}
	plain, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	return s.cfg.Seal.Seal(plain, sealAAD(org, id, "headers"))
}

func (s *Service) headers(e *endpoint) (map[string]string, error) {
	if len(e.Headers) == 0 {
		return nil, nil
	}
	plain, err := s.cfg.Seal.Unseal(e.Headers, sealAAD(e.Org, e.ID, "headers"))
	if err != nil {
		return nil, fmt.Errorf("read headers of webhook %s: %w", e.ID, err)
	}
	var h map[string]string
	err = json.Unmarshal(plain, &h)
	return h, err
}
