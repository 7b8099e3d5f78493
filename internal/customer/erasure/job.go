package erasure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/telephony/number"
)

// Queue is the name of the job queue of erasures.
const Queue = "erasure"

const eraseKind = "erasure.run"

// jobArgs are the arguments of the job. They contain the id only, so that no job row contains the number.
type jobArgs struct {
	ID string `json:"id"`
}

// RegisterJobs registers the job handler of erasures.
func (s *Service) RegisterJobs(r *job.Runner) { r.Handle(eraseKind, s.run) }

// callRecheck is the delay before the erasure is retried while a call with the number is in progress.
const callRecheck = 30 * time.Second

// run erases the stores in small transactions, so that other writers wait only briefly. After a crash it continues
// with the remaining items.
func (s *Service) run(ctx context.Context, j job.Job) error {
	var ref jobArgs
	if err := j.Bind(&ref); err != nil {
		return errors.Join(err, job.ErrDead)
	}
	phone, err := s.phone(ctx, j.Org, ref.ID)
	if err != nil || phone == "" {
		return err
	}
	spellings := number.AllSpellings([]string{phone})
	for _, n := range spellings {
		busy, err := s.cfg.Calls.HasActiveCallWith(ctx, j.Org, n)
		if err != nil {
			return err
		}
		if busy {
			return &job.Retry{After: callRecheck, NotCounted: true, Cause: errors.New("a call with the number is in progress")}
		}
	}
	items := 0
	for _, k := range s.cfg.Stores {
		for _, spelling := range spellings {
			n, err := s.eraseStore(ctx, k, j.Org, spelling)
			if err != nil {
				return fmt.Errorf("erase what %s keep: %w", k.Name, err)
			}
			items += n
		}
	}
	return s.complete(ctx, j.Org, ref.ID, items)
}

// eraseStore calls Erase until no item is left, each time in a transaction. It returns the number of items.
func (s *Service) eraseStore(ctx context.Context, k NamedStore, org, phone string) (all int, err error) {
	for {
		n := 0
		err := s.cfg.DB.Tx(ctx, func(tx db.Querier) (err error) {
			n, err = k.Erase(ctx, tx, org, phone)
			return err
		})
		if err != nil || n == 0 {
			return all, err
		}
		all += n
	}
}

func (s *Service) complete(ctx context.Context, org, id string, items int) error {
	for _, o := range s.observers {
		if err := o.NumberErased(ctx, org); err != nil {
			return err
		}
	}
	if err := s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		if err := s.invalidateExports(ctx, tx, org); err != nil {
			return err
		}
		return s.finish(ctx, tx, org, id, items)
	}); err != nil {
		return err
	}
	return s.cfg.DB.CheckpointAndScrub(ctx)
}
