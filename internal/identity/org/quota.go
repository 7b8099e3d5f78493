package org

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Resource is a kind of object whose number a quota limits.
type Resource string

// Resources that are counted when they are added.
const (
	Users   Resource = "users"
	Numbers Resource = "numbers"
)

// CheckQuota returns plan_limit if one more object exceeds the quota. Call it in the transaction that adds the
// object. It locks the organisation before it calls count, so that concurrent additions cannot exceed the quota
// together.
func (s *Service) CheckQuota(ctx context.Context, tx db.Querier, id string, what Resource, count func() (int, error)) error {
	return s.CheckQuotaMany(ctx, tx, id, what, 1, count)
}

// CheckQuotaMany is CheckQuota for several objects at once.
func (s *Service) CheckQuotaMany(ctx context.Context, tx db.Querier, id string, what Resource, more int, count func() (int, error)) error {
	o, err := get(ctx, tx, id)
	if err != nil {
		return fmt.Errorf("find organisation: %w", err)
	}
	q := s.plans.quota(o)
	most := map[Resource]*int{Users: q.Users, Numbers: q.Numbers}[what]
	if most == nil {
		return nil
	}
	if err := lockOrg(ctx, tx, id); err != nil {
		return err
	}
	used, err := count()
	if err != nil {
		return fmt.Errorf("count %s: %w", what, err)
	}
	if used+more <= *most {
		return nil
	}
	return PlanLimit(o.Plan, string(what), used, *most)
}

// lockOrg locks the row of the organisation until the end of the transaction, in both databases.
func lockOrg(ctx context.Context, tx db.Querier, id string) error {
	if _, err := tx.Exec(ctx, `UPDATE orgs SET plan = plan WHERE id = $1`, id); err != nil {
		return fmt.Errorf("lock organisation: %w", err)
	}
	return nil
}

// PlanLimit returns the error for a resource that the plan does not allow more of.
func PlanLimit(plan, what string, used, most int) *op.Error {
	return &op.Error{Code: "plan_limit", Detail: fmt.Sprintf("the plan %s allows %d %s", plan, most, what),
		Extra: map[string]any{"limit": what, "allowed": most, "used": used}}
}

// capAt returns the organisation's choice, limited by its quota. nil: no limit.
func capAt(chosen int, most *int) int {
	if most == nil {
		return chosen
	}
	return min(chosen, *most)
}
