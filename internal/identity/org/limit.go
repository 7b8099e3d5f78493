package org

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// A Resource is what a quota bounds by number.
type Resource string

// The resources that are counted as they are added.
const (
	Users   Resource = "users"
	Numbers Resource = "numbers"
)

// Admit allows one more of a resource, or refuses with plan_limit. It is called in the transaction that adds it, before count
// reads how many there are: additions of one organisation wait for each other, so that two at once are not one too many.
func (s *Service) Admit(ctx context.Context, tx db.Querier, id string, what Resource, count func() (int, error)) error {
	return s.AdmitMany(ctx, tx, id, what, 1, count)
}

// AdmitMany is Admit for many more at once.
func (s *Service) AdmitMany(ctx context.Context, tx db.Querier, id string, what Resource, more int, count func() (int, error)) error {
	o, err := get(ctx, tx, id)
	if err != nil {
		return fmt.Errorf("find organisation: %w", err)
	}
	q := s.plans.quota(o)
	most := map[Resource]*int{Users: q.Users, Numbers: q.Numbers}[what]
	if most == nil {
		return nil
	}
	if err := takeTurn(ctx, tx, id); err != nil {
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

// takeTurn takes the organisation's row, which makes others wait, in both databases.
func takeTurn(ctx context.Context, tx db.Querier, id string) error {
	if _, err := tx.Exec(ctx, `UPDATE orgs SET plan = plan WHERE id = $1`, id); err != nil {
		return fmt.Errorf("take turn in organisation: %w", err)
	}
	return nil
}

// PlanLimit says that the plan does not allow more of something.
func PlanLimit(plan, what string, used, most int) *op.Error {
	return &op.Error{Code: "plan_limit", Detail: fmt.Sprintf("the plan %s allows %d %s", plan, most, what),
		Extra: map[string]any{"limit": what, "allowed": most, "used": used}}
}

// capped bounds what an organisation chose for itself by its quota.
func capped(chosen int, most *int) int {
	if most == nil {
		return chosen
	}
	return min(chosen, *most)
}
