package erasure

import (
	"context"
	"errors"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
)

// exportAAD returns the associated data that binds the sealed number of an export to its row.
func exportAAD(org, id string) []byte { return []byte(org + "|person_exports|" + id + "|phone") }

func openExports(ctx context.Context, q db.Querier, org string) (n int, err error) {
	const text = `SELECT count(*) FROM person_exports WHERE org_id = $1 AND status IN ('queued', 'running')`
	err = q.QueryRow(ctx, text, org).Scan(&n)
	return n, err
}

func insertExport(ctx context.Context, tx db.Querier, e PersonExport, reason, by string) error {
	const q = `INSERT INTO person_exports (org_id, id, phone, phone_hint, reason, status, items, parts_total, parts_done, size_bytes, revision,
			requested_by, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, 0, $7, 0, 0, 0, $8, $9)`
	_, err := tx.Exec(ctx, q, e.org, e.ID, e.phone, e.PhoneHint, db.Null(reason), e.Status, e.PartsTotal, by, e.CreatedAt)
	if err != nil {
		return fmt.Errorf("write export: %w", err)
	}
	return nil
}

func loadExport(ctx context.Context, q db.Querier, org, id string) (e PersonExport, err error) {
	const text = `SELECT org_id, id, phone, phone_hint, status, items, parts_total, parts_done, size_bytes, revision, error, created_at,
			started_at, finished_at, expires_at
		FROM person_exports WHERE org_id = $1 AND id = $2`
	err = q.QueryRow(ctx, text, org, id).Scan(&e.org, &e.ID, &e.phone, &e.PhoneHint, &e.Status, &e.Items, &e.PartsTotal, &e.PartsDone,
		&e.SizeBytes, &e.revision, &e.Error, &e.CreatedAt, &e.StartedAt, &e.FinishedAt, &e.ExpiresAt)
	return e, err
}

// errErased reports that a number was erased during the export. The file is then written again.
var errErased = errors.New("a number was erased meanwhile")

// updateExport stores the progress of an export. If a number was erased since it began (its revision changed), it returns a job.Retry.
func updateExport(ctx context.Context, tx db.Querier, e PersonExport) error {
	const q = `UPDATE person_exports SET phone = $3, status = $4, items = $5, parts_total = $6, parts_done = $7, size_bytes = $8, error = $9,
			started_at = $10, finished_at = $11, expires_at = $12
		WHERE org_id = $1 AND id = $2 AND revision = $13`
	r, err := tx.Exec(ctx, q, e.org, e.ID, e.phone, e.Status, e.Items, e.PartsTotal, e.PartsDone, e.SizeBytes, e.Error, e.StartedAt,
		e.FinishedAt, e.ExpiresAt, e.revision)
	if err != nil {
		return fmt.Errorf("write export %s: %w", e.ID, err)
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, &job.Retry{NotCounted: true, Cause: errErased})
	}
	return nil
}

// invalidateExports expires the ready exports of an organisation and restarts the running ones, because they may contain erased data. The
// export of one number can contain another number, if both are in one call or text.
func (s *Service) invalidateExports(ctx context.Context, tx db.Querier, org string) error {
	const running = `UPDATE person_exports SET revision = revision + 1 WHERE org_id = $1 AND status IN ('queued', 'running')`
	if _, err := tx.Exec(ctx, running, org); err != nil {
		return fmt.Errorf("begin exports again: %w", err)
	}
	const ready = `UPDATE person_exports SET expires_at = $2 WHERE org_id = $1 AND status = 'ready' AND expires_at > $2 RETURNING id`
	ids, err := db.Strings(ctx, tx, "end exports", ready, org, db.At(s.cfg.Clock.Now()))
	if err != nil || len(ids) == 0 {
		return err
	}
	specs := make([]job.Spec, 0, len(ids))
	for _, id := range ids {
		specs = append(specs, job.Spec{Org: org, Queue: ExportQueue, Kind: expireKind, Args: jobArgs{id}})
	}
	return s.cfg.Jobs.Enqueue(ctx, tx, specs...)
}
