package partner

import (
	"context"
	"errors"
	"fmt"

	"soniq/internal/identity/org"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
)

// Queue is the job queue for the erasure of child organisations.
const Queue = "partner"

const eraseKind = "partner.erase"

// eraseArgs is the argument of the erasure job.
type eraseArgs struct {
	ID string `json:"id"`
}

// Handle registers the handlers of the job queue.
func (s *Service) Handle(r *job.Runner) { r.Handle(eraseKind, s.eraseJob) }

// scheduleErase schedules the erasure of a closed organisation after the grace period. The job belongs to the
// partner, because it must survive the erased organisation.
func (s *Service) scheduleErase(ctx context.Context, tx db.Querier, o org.Organization) error {
	return s.cfg.Jobs.Enqueue(ctx, tx, job.Spec{Org: *o.ParentID, Queue: Queue, Kind: eraseKind, Args: eraseArgs{o.ID},
		RunAt: o.EraseAfter.Time, UniqueKey: eraseKind + " " + o.ID + " " + o.EraseAfter.String()})
}

// eraseJob erases an organisation that is still closed. It can be repeated after a failure at any point.
func (s *Service) eraseJob(ctx context.Context, j job.Job) error {
	var ref eraseArgs
	if err := j.Bind(&ref); err != nil {
		return errors.Join(err, job.ErrDead)
	}
	o, err := s.cfg.Orgs.Child(ctx, s.cfg.DB.Read(ctx), j.Org, ref.ID)
	if db.IsNone(err) || err == nil && (o.Status != org.Closed || s.cfg.Clock.Now().Before(o.EraseAfter.Time)) {
		return nil // erased already, or resumed
	}
	if err != nil {
		return fmt.Errorf("find closed organisation: %w", err)
	}
	if err := s.cfg.MayDelete.Check(); err != nil {
		return err
	}
	return s.erase(ctx, o)
}

// erase deletes everything of an organisation, of its children and of its sandbox twin: first files, then rows.
func (s *Service) erase(ctx context.Context, o org.Organization) error {
	for {
		children, err := s.cfg.Orgs.Children(ctx, s.cfg.DB.Read(ctx), o.ID, org.ChildFilter{Limit: 100})
		if err != nil {
			return err
		}
		if len(children) == 0 {
			break
		}
		for _, c := range children {
			if err := s.erase(ctx, c); err != nil {
				return err
			}
		}
	}
	twin, err := s.cfg.Orgs.Twin(ctx, o.ID)
	if err != nil && !db.IsNone(err) {
		return fmt.Errorf("find sandbox twin: %w", err)
	}
	if twin != "" && twin != o.ID {
		if err := s.eraseOne(ctx, twin); err != nil {
			return err
		}
	}
	return s.eraseOne(ctx, o.ID)
}

func (s *Service) eraseOne(ctx context.Context, id string) error {
	tables, err := s.cfg.DB.TenantTables(ctx)
	if err != nil {
		return err
	}
	if err := s.cfg.Files.RemoveFiles(id); err != nil {
		return fmt.Errorf("erase files: %w", err)
	}
	if _, err := s.cfg.DB.EraseTenant(ctx, id, tables); err != nil {
		return err
	}
	err = s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		// tenant: deletes the row of the organisation itself
		_, err := tx.Exec(ctx, `DELETE FROM orgs WHERE id = $1`, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("erase organisation: %w", err)
	}
	for _, o := range s.observers {
		o.OrgErased(id)
	}
	return nil
}
