package number

import (
	"context"
	"errors"
	"fmt"

	"soniq/db"
	"soniq/job"
	"soniq/op"
	"soniq/org"
)

const orderKind = "number.order"

// ordering is the argument of the job that follows an order.
type ordering struct {
	ID string `json:"id"`
}

// Handle registers what follows orders.
func (s *Service) Handle(r *job.Runner) { r.Handle(orderKind, s.Follow) }

// source finds where a new number without a trunk comes from, and makes it active, or pending.
func (s *Service) source(ctx context.Context, tx db.Querier, o org.Organization, n *Number, provider string) error {
	trunk, err := inStock(ctx, tx, o.ID, n.Number)
	if err == nil && (provider == "" || provider == Own) {
		n.Provider, n.TrunkID = Own, &trunk
		return nil
	}
	if err != nil && !db.IsNone(err) {
		return fmt.Errorf("look into stock: %w", err)
	}
	for _, p := range s.providers(o)[1:] {
		if provider == "" || provider == p.name {
			n.Provider = p.name
			return s.order(n, p.market)
		}
	}
	return op.Invalid(op.Field("trunk_id", "required", "no provider sells this number here; name the trunk of a number you own"))
}

// order orders a number at a market that answers at once, or leaves that to a job.
func (s *Service) order(n *Number, m Market) error {
	n.Status, n.AllocatedAt = "pending", db.Time{}
	now, instant := m.(Instant)
	if !instant {
		return nil
	}
	o, err := now.OrderNow(n.OrgID, n.Number)
	if errors.Is(err, ErrUnavailable) {
		return op.Fail("number_unavailable", n.Number+" cannot be had any more")
	}
	if err != nil {
		return fmt.Errorf("order number: %w", err)
	}
	n.MonthlyCost, n.after = o.MonthlyCost, o.After
	if o.Active {
		n.Status, n.AllocatedAt = "active", n.CreatedAt
	}
	return nil
}

// pursue has a job follow the order of a number that is pending.
func (s *Service) pursue(ctx context.Context, tx db.Querier, n Number) error {
	return s.Jobs.Enqueue(ctx, tx, job.Spec{Org: n.OrgID, Queue: s.JobQueue, Lane: n.OrgID, Kind: orderKind, Args: ordering{n.ID},
		RunAt: s.now().Add(n.after), UniqueKey: orderKind + " " + n.ID})
}

// Follow asks how far an order is, until the number is active or cannot be had.
func (s *Service) Follow(ctx context.Context, j job.Job) error {
	var ref ordering
	if err := j.Bind(&ref); err != nil {
		return errors.Join(err, job.ErrDead)
	}
	n, err := get(ctx, s.db.Read(ctx), j.Org, ref.ID)
	if db.IsNone(err) || err == nil && n.Status != "pending" {
		return nil
	}
	if err != nil {
		return err
	}
	m := s.Markets[n.Provider]
	if m == nil {
		return errors.Join(fmt.Errorf("there is no provider %s any more", n.Provider), job.ErrDead)
	}
	o, err := m.Order(ctx, n.OrgID, n.Number)
	switch {
	case errors.Is(err, ErrUnavailable):
		return s.settle(ctx, n, "failed", nil)
	case err != nil && j.Last():
		return errors.Join(s.settle(ctx, n, "failed", nil), err)
	case err != nil:
		return err
	case !o.Active:
		return &job.Retry{After: o.After, Free: true, Cause: errors.New("the order is not carried out yet")}
	}
	return s.settle(ctx, n, "active", o.MonthlyCost)
}

// settle ends the order of a number; number.allocated is told in the same transaction.
func (s *Service) settle(ctx context.Context, n Number, status string, cost *Cost) error {
	return s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		now := db.At(s.now())
		const text = `UPDATE numbers SET status = $3, allocated_at = $4, updated_at = $5, monthly_cost = COALESCE($6, monthly_cost)
			WHERE org_id = $1 AND id = $2 AND status IN ('pending', 'porting_in')`
		var allocated db.Time
		if status == "active" {
			allocated = now
		}
		r, err := tx.Exec(ctx, text, n.OrgID, n.ID, status, allocated, now, costText(cost))
		if err != nil {
			return fmt.Errorf("settle number: %w", err)
		}
		if changed, err := r.RowsAffected(); err != nil || changed == 0 || status != "active" {
			return err
		}
		if n, err = get(ctx, tx, n.OrgID, n.ID); err != nil {
			return fmt.Errorf("read number: %w", err)
		}
		s.changed(tx, n.Number)
		return s.allocate(ctx, tx, n)
	})
}

// costText stores no price as NULL.
func costText(c *Cost) any {
	if c == nil {
		return nil
	}
	return db.AsJSON(c)
}
