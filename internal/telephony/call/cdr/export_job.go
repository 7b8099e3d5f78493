package cdr

import (
	"context"
	"errors"
	"fmt"
	"io"

	"soniq/internal/platform/access"
	"soniq/internal/platform/blob"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
)

// exportBatch is how many records are read at once, and written before the progress is stored.
const exportBatch = 1000

type exportJobArgs struct {
	ID string `json:"id"`
}

// Handle registers the job handlers that write exports and delete expired files.
func (s *Service) Handle(r *job.Runner) {
	r.Handle(exportKind, s.runExport)
	r.Handle(expireKind, s.expireExport)
}

// errRecordsErased reports that records were erased during the export. The file is then written again.
var errRecordsErased = errors.New("records were erased meanwhile")

// runExport writes the file from its beginning.
func (s *Service) runExport(ctx context.Context, j job.Job) error {
	var ref exportJobArgs
	if err := j.Bind(&ref); err != nil {
		return errors.Join(err, job.ErrDead)
	}
	e, err := getExport(ctx, s.cfg.DB.Read(ctx), j.Org, ref.ID)
	if db.IsNone(err) || err == nil && e.Status != "queued" && e.Status != "running" {
		return nil
	}
	if err == nil {
		err = s.writeExport(access.With(ctx, access.Principal{OrgID: e.org, UserID: e.user}), &e)
	}
	switch {
	case err == nil, !j.Last():
		return err
	case e.ID == "":
		return err
	}
	s.cfg.Log.Warn("export failed", "export", e.ID, "org", e.org, "err", err)
	why := "the records could not be written; try again"
	e.Status, e.Error, e.FinishedAt = "failed", &why, db.At(s.cfg.Clock.Now())
	if err := s.cfg.Files.Delete(ctx, e.blob()); err != nil {
		return err
	}
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error { return updateExport(ctx, tx, e) })
}

func (s *Service) writeExport(ctx context.Context, e *Export) error {
	if err := s.beginExport(ctx, e); err != nil {
		return err
	}
	path, err := s.cfg.Files.Path(e.blob())
	if err != nil {
		return err
	}
	e.SizeBytes, err = blob.WriteFile(path, func(w io.Writer) error { return s.writeRecords(ctx, e, w) })
	if err != nil {
		return fmt.Errorf("write export: %w", err)
	}
	return s.finishExport(ctx, e)
}

// beginExport counts the records and sets the export to running.
func (s *Service) beginExport(ctx context.Context, e *Export) error {
	n, err := s.cfg.Records.CountCDRs(ctx, e.org, e.Filters.filter(), e.Since, e.Until)
	if err != nil {
		return fmt.Errorf("count records to export: %w", err)
	}
	e.Status, e.RecordsTotal, e.RecordsDone, e.StartedAt = "running", int64(n), 0, db.At(s.cfg.Clock.Now())
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error { return updateExport(ctx, tx, *e) })
}

// writeRecords writes the records in the order in which the calls ended.
func (s *Service) writeRecords(ctx context.Context, e *Export, w io.Writer) error {
	rows, err := newRowWriter(w, e.Format, e.Columns)
	if err == nil {
		err = s.copyRecords(ctx, e, rows)
	}
	if err != nil {
		return err
	}
	return rows.flush()
}

func (s *Service) copyRecords(ctx context.Context, e *Export, rows rowWriter) error {
	var after db.Time
	for id := ""; ; {
		some, err := s.cfg.Records.CDRsAfter(ctx, e.org, e.Filters.filter(), e.Since, e.Until, after, id, exportBatch)
		if err != nil {
			return err
		}
		for _, r := range some {
			if err := rows.write(r); err != nil {
				return err
			}
			after, id = r.EndedAt, r.CallID
		}
		e.RecordsDone += int64(len(some))
		if len(some) < exportBatch {
			return nil
		}
		if err := s.cfg.DB.Tx(ctx, func(tx db.Querier) error { return updateExport(ctx, tx, *e) }); err != nil {
			return err
		}
	}
}

// finishExport sets the export to ready and enqueues the job that deletes the file at expires_at.
func (s *Service) finishExport(ctx context.Context, e *Export) error {
	e.Status, e.FinishedAt, e.ExpiresAt, e.RecordsTotal = "ready", db.At(s.cfg.Clock.Now()), db.At(s.cfg.Clock.Now().Add(exportLife)),
		e.RecordsDone
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		if err := updateExport(ctx, tx, *e); err != nil {
			return err
		}
		return s.cfg.Jobs.Enqueue(ctx, tx, job.Spec{Org: e.org, Queue: JobQueue, Kind: expireKind, Args: exportJobArgs{e.ID},
			RunAt: e.ExpiresAt.Time})
	})
}

// expireExport deletes the file of an expired export.
func (s *Service) expireExport(ctx context.Context, j job.Job) error {
	var ref exportJobArgs
	if err := j.Bind(&ref); err != nil {
		return errors.Join(err, job.ErrDead)
	}
	e, err := s.findExport(ctx, j.Org, ref.ID)
	if err != nil {
		return err
	}
	if e.Status != "expired" {
		return nil
	}
	if err := s.cfg.MayDelete.Check(); err != nil {
		return err
	}
	if err := s.cfg.Files.Delete(ctx, e.blob()); err != nil {
		return fmt.Errorf("delete export %s: %w", e.ID, err)
	}
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		_, err := tx.Exec(ctx, `UPDATE cdr_exports SET status = 'expired' WHERE org_id = $1 AND id = $2`, e.org, e.ID)
		return err
	})
}

// InvalidateExports deletes the export files of an organisation and restarts the running exports, because they may
// contain erased records.
func (s *Service) InvalidateExports(ctx context.Context, tx db.Querier, org string) error {
	const running = `UPDATE cdr_exports SET revision = revision + 1 WHERE org_id = $1 AND status IN ('queued', 'running')`
	if _, err := tx.Exec(ctx, running, org); err != nil {
		return fmt.Errorf("begin exports again: %w", err)
	}
	const ready = `UPDATE cdr_exports SET expires_at = $2 WHERE org_id = $1 AND status = 'ready' AND expires_at > $2 RETURNING id`
	rows, err := tx.Query(ctx, ready, org, db.At(s.cfg.Clock.Now()))
	if err != nil {
		return fmt.Errorf("end exports: %w", err)
	}
	defer rows.Close()
	var specs []job.Spec
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return err
		}
		specs = append(specs, job.Spec{Org: org, Queue: JobQueue, Kind: expireKind, Args: exportJobArgs{id}})
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil || len(specs) == 0 {
		return err
	}
	return s.cfg.Jobs.Enqueue(ctx, tx, specs...)
}

func insertExport(ctx context.Context, tx db.Querier, e Export) error {
	const q = `INSERT INTO cdr_exports (org_id, id, status, ask, total, done, size_bytes, revision, created_at, user_id)
		VALUES ($1, $2, $3, $4, 0, 0, 0, 0, $5, $6)`
	ask := storedExportRequest{Format: e.Format, Since: e.Since, Until: e.Until, Filters: e.Filters, Columns: e.Columns}
	_, err := tx.Exec(ctx, q, e.org, e.ID, e.Status, db.AsJSON(ask), e.CreatedAt, db.Null(e.user))
	return err
}

// updateExport stores the progress of an export. If records were erased since it began (its revision changed), it
// returns a job.Retry with errRecordsErased.
func updateExport(ctx context.Context, tx db.Querier, e Export) error {
	const q = `UPDATE cdr_exports SET status = $3, total = $4, done = $5, size_bytes = $6, error = $7, started_at = $8, finished_at = $9,
		expires_at = $10
		WHERE org_id = $1 AND id = $2 AND revision = $11`
	r, err := tx.Exec(ctx, q, e.org, e.ID, e.Status, e.RecordsTotal, e.RecordsDone, e.SizeBytes, e.Error, e.StartedAt, e.FinishedAt,
		e.ExpiresAt, e.revision)
	if err != nil {
		return fmt.Errorf("write export %s: %w", e.ID, err)
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, &job.Retry{NotCounted: true, Cause: errRecordsErased})
	}
	return nil
}

func getExport(ctx context.Context, q db.Querier, org, id string) (Export, error) {
	const text = `SELECT org_id, id, status, ask, total, done, size_bytes, revision, error, created_at, started_at, finished_at, expires_at,
			user_id
		FROM cdr_exports WHERE org_id = $1 AND id = $2`
	var e Export
	var ask db.JSON[storedExportRequest]
	var user db.Null
	err := q.QueryRow(ctx, text, org, id).Scan(&e.org, &e.ID, &e.Status, &ask, &e.RecordsTotal, &e.RecordsDone, &e.SizeBytes, &e.revision,
		&e.Error, &e.CreatedAt, &e.StartedAt, &e.FinishedAt, &e.ExpiresAt, &user)
	e.user = string(user)
	e.Format, e.Since, e.Until, e.Filters, e.Columns = ask.V.Format, ask.V.Since, ask.V.Until, ask.V.Filters,
		append([]string{}, ask.V.Columns...)
	return e, err
}
