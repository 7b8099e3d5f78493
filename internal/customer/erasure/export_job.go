package erasure

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"soniq/internal/platform/blob"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/telephony/number"
)

// RegisterExportJobs registers the job handlers that write exports and delete expired files.
func (s *Service) RegisterExportJobs(r *job.Runner) {
	r.Handle(exportKind, s.runExport)
	r.Handle(expireKind, s.expireExport)
}

// runExport writes the file from its beginning, also after a crash.
func (s *Service) runExport(ctx context.Context, j job.Job) error {
	var ref jobArgs
	if err := j.Bind(&ref); err != nil {
		return errors.Join(err, job.ErrDead)
	}
	e, err := loadExport(ctx, s.cfg.DB.Read(ctx), j.Org, ref.ID)
	if db.IsNone(err) || err == nil && e.Status != "queued" && e.Status != "running" {
		return nil
	}
	if err != nil {
		return err
	}
	err = s.writeExport(ctx, &e)
	var again *job.Retry
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errTooLarge):
		return s.failExport(ctx, e, errTooLarge.Error(), err)
	case errors.As(err, &again) || !j.Last():
		return err
	}
	return s.failExport(ctx, e, "the data could not be written; try again", err)
}

func (s *Service) failExport(ctx context.Context, e PersonExport, why string, cause error) error {
	s.cfg.Log.Warn("export of a person failed", "export", e.ID, "org", e.org, "err", cause)
	e.Status, e.Error, e.FinishedAt, e.phone = "failed", &why, db.At(s.cfg.Clock.Now()), nil
	if err := s.cfg.Files.Delete(ctx, e.blob()); err != nil {
		return err
	}
	return s.saveExport(ctx, e)
}

func (s *Service) saveExport(ctx context.Context, e PersonExport) error {
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error { return updateExport(ctx, tx, e) })
}

func (s *Service) writeExport(ctx context.Context, e *PersonExport) error {
	phone, err := s.cfg.Seal.Unseal(e.phone, exportAAD(e.org, e.ID))
	if err != nil {
		return fmt.Errorf("unseal number: %w", err)
	}
	e.Status, e.StartedAt, e.Items, e.PartsDone, e.PartsTotal = "running", db.At(s.cfg.Clock.Now()), 0, 0, len(s.cfg.Stores)
	if err := s.saveExport(ctx, *e); err != nil {
		return err
	}
	path, err := s.cfg.Files.Path(e.blob())
	if err != nil {
		return err
	}
	e.SizeBytes, err = blob.WriteFile(path, func(w io.Writer) error {
		a := &archive{zip: zip.NewWriter(w), folder: filepath.Dir(path), now: s.cfg.Clock.Now()}
		defer a.close()
		return s.fillArchive(ctx, e, a, number.AllSpellings([]string{string(phone)}))
	})
	if err != nil {
		return fmt.Errorf("write export of a person: %w", err)
	}
	return s.finishExport(ctx, e)
}

// progressItems is how many items are written before the progress is stored.
const progressItems = 500

// fillArchive writes the items of all stores, then the sound files, then the index.
func (s *Service) fillArchive(ctx context.Context, e *PersonExport, a *archive, spellings []string) error {
	a.onItem = func() error {
		if e.Items = a.items; e.Items%progressItems != 0 {
			return nil
		}
		return s.saveExport(ctx, *e)
	}
	for _, k := range s.cfg.Stores {
		for _, spelling := range spellings {
			if err := k.Export(ctx, s.cfg.DB.Read(ctx), e.org, spelling, a); err != nil {
				return fmt.Errorf("export what %s keep: %w", k.Name, err)
			}
		}
		e.PartsDone++
		if err := s.saveExport(ctx, *e); err != nil {
			return err
		}
	}
	if err := a.writeKinds(); err != nil {
		return err
	}
	e.PartsTotal += len(a.sounds)
	for _, sound := range a.sounds {
		if err := a.writeSound(ctx, s.cfg.Files, sound); err != nil {
			return err
		}
		e.PartsDone++
		if err := s.saveExport(ctx, *e); err != nil {
			return err
		}
	}
	for _, n := range spellings {
		busy, err := s.cfg.Calls.HasActiveCallWith(ctx, e.org, n)
		if err != nil {
			return err
		}
		if busy {
			a.omit("calls", "a call with the number is in progress: export the number again when it is over")
		}
	}
	return a.finish(e.ID, spellings)
}

// finishExport sets the export to ready and enqueues the job that deletes the file at expires_at.
func (s *Service) finishExport(ctx context.Context, e *PersonExport) error {
	now := s.cfg.Clock.Now()
	e.Status, e.FinishedAt, e.ExpiresAt, e.phone = "ready", db.At(now), db.At(now.Add(exportLife)), nil
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		if err := updateExport(ctx, tx, *e); err != nil {
			return err
		}
		return s.cfg.Jobs.Enqueue(ctx, tx, job.Spec{Org: e.org, Queue: ExportQueue, Kind: expireKind, Args: jobArgs{e.ID},
			RunAt: e.ExpiresAt.Time})
	})
}

// expireExport deletes the file of an expired export.
func (s *Service) expireExport(ctx context.Context, j job.Job) error {
	var ref jobArgs
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
		_, err := tx.Exec(ctx, `UPDATE person_exports SET status = 'expired' WHERE org_id = $1 AND id = $2`, e.org, e.ID)
		return err
	})
}
