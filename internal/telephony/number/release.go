package number

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
)

const (
	releaseKind = "number.release"
	releasing   = "releasing"
)

// release removes the assignment of a number and releases it: at once, or by a job if it was bought from a provider.
func (s *Service) release(ctx context.Context, tx db.Querier, n Number) error {
	again := n.Status == releasing
	n.UpdatedAt, n.StatusDetail = db.At(s.now()), nil
	n.TrunkID, n.AssignedTo = nil, Assignment{Type: "none"}
	bought := n.account != "" && n.Status != "failed"
	if n.Status = releasing; !bought {
		n.Status, n.ReleasedAt = Released, n.UpdatedAt
	}
	if err := updateNumber(ctx, tx, n); err != nil {
		return fmt.Errorf("release number: %w", err)
	}
	s.publishChanged(tx, n.Number)
	if bought {
		err := s.config.Jobs.Enqueue(ctx, tx, job.Spec{Org: n.OrgID, Queue: s.config.JobQueue, Lane: n.OrgID, Kind: releaseKind,
			Args:      numberJobArgs{n.ID},
			UniqueKey: releaseKind + " " + n.ID, OrderKey: "number " + n.ID})
		if err != nil || again {
			return err
		}
	}
	for _, o := range s.observers {
		if err := o.NumberReleased(ctx, tx, n.OrgID, n.ID); err != nil {
			return err
		}
	}
	return nil
}

// ReleaseAtProvider releases a number at the provider from which it was bought. The job is retried until it succeeds.
func (s *Service) ReleaseAtProvider(ctx context.Context, j job.Job) error {
	n, err := s.jobNumber(ctx, j)
	if db.IsNone(err) || err == nil && n.Status != releasing {
		return nil
	}
	if err != nil {
		return err
	}
	m, err := s.providerOf(ctx, n)
	if err == nil {
		asking, cancel := context.WithTimeout(ctx, providerTimeout)
		defer cancel()
		err = m.Release(asking, n.orderRequest())
	}
	if err != nil {
		return s.recordFailure(ctx, n, j, err)
	}
	return s.db.Tx(ctx, func(tx db.Querier) error {
		n.Status, n.ReleasedAt, n.UpdatedAt, n.StatusDetail = Released, db.At(s.now()), db.At(s.now()), nil
		if err := updateNumber(ctx, tx, n); err != nil {
			return fmt.Errorf("release number: %w", err)
		}
		s.publishChanged(tx, n.Number)
		return nil
	})
}
