package number

import (
	"context"
	"errors"
	"fmt"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
)

const orderKind = "number.order"

// ordering is the argument of the jobs that follow an order, or give a number back.
type ordering struct {
	ID string `json:"id"`
}

// Handle registers what follows orders.
func (s *Service) Handle(r *job.Runner) {
	r.Handle(orderKind, s.Follow)
	r.Handle(releaseKind, s.GiveBack)
}

// deal is what the market is asked for.
func (n Number) deal() Deal { return Deal{Org: n.OrgID, Number: n.Number, Ref: n.ID} }

// source finds where a new number without a trunk comes from, and makes it active, or pending.
func (s *Service) source(ctx context.Context, tx db.Querier, o org.Organization, n *Number, name string) error {
	trunk, err := inStock(ctx, tx, o.ID, n.Number)
	if err == nil && (name == "" || name == Own) {
		n.Provider, n.TrunkID = Own, &trunk
		return nil
	}
	if err != nil && !db.IsNone(err) {
		return fmt.Errorf("look into stock: %w", err)
	}
	all, err := s.providers(ctx, tx, o)
	if err != nil {
		return err
	}
	for _, p := range all[1:] {
		if name == "" || name == p.name {
			n.Provider = p.name
			if p.account.ID != "" {
				n.account, n.TrunkID = db.Null(p.account.ID), &p.account.TrunkID
			}
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
	o, err := now.OrderNow(n.deal())
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

// pursue has a job follow the order of a number that is pending. What concerns one number is done one after the other.
func (s *Service) pursue(ctx context.Context, tx db.Querier, n Number) error {
	return s.Jobs.Enqueue(ctx, tx, job.Spec{Org: n.OrgID, Queue: s.JobQueue, Lane: n.OrgID, Kind: orderKind, Args: ordering{n.ID},
		RunAt: s.now().Add(n.after), UniqueKey: orderKind + " " + n.ID, OrderKey: "number " + n.ID})
}

// marketOf is where a number is bought.
func (s *Service) marketOf(ctx context.Context, n Number) (Market, error) {
	if n.account == "" {
		if m := s.Markets[n.Provider]; m != nil {
			return m, nil
		}
		return nil, fmt.Errorf("there is no provider %s any more", n.Provider)
	}
	all, err := s.accounts(ctx, s.db.Read(ctx), n.OrgID)
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		if w := s.way(a); a.ID == string(n.account) && w != nil {
			return w, nil
		}
	}
	return nil, fmt.Errorf("account %s at %s is gone", n.account, n.Provider)
}

// orderTime bounds one question about an order.
const orderTime = 30 * time.Second

// Follow asks how far an order is, until the number is active or cannot be had. An order whose provider cannot be reached is not given up: it
// may have been taken. Whoever does not want to wait gives the number back.
func (s *Service) Follow(ctx context.Context, j job.Job) error {
	n, err := s.bound(ctx, j)
	if db.IsNone(err) || err == nil && n.Status != "pending" {
		return nil
	}
	if err != nil {
		return err
	}
	m, err := s.marketOf(ctx, n)
	if err != nil {
		return s.put(ctx, n, j, err)
	}
	asking, cancel := context.WithTimeout(ctx, orderTime)
	defer cancel()
	o, err := m.Order(asking, n.deal())
	switch {
	case errors.Is(err, ErrUnavailable):
		return s.settle(ctx, n, "failed", Order{Detail: words(err)})
	case err != nil:
		return s.put(ctx, n, j, err)
	case o.Active:
		return s.settle(ctx, n, "active", o)
	}
	if err := s.progress(ctx, n, o); err != nil {
		return err
	}
	return &job.Retry{After: pace(o.After, s.now().Sub(n.CreatedAt.Time)), Free: true, Cause: errors.New("the order is not carried out yet")}
}

// bound reads the number a job is about.
func (s *Service) bound(ctx context.Context, j job.Job) (Number, error) {
	var ref ordering
	if err := j.Bind(&ref); err != nil {
		return Number{}, errors.Join(err, job.ErrDead)
	}
	return get(ctx, s.db.Read(ctx), j.Org, ref.ID)
}

// pace asks old orders less often than new ones.
func pace(after, age time.Duration) time.Duration { return max(after, min(age/10, 10*time.Minute)) }

// put notes why a provider could not be asked, and has the job ask again: the more often, the later.
func (s *Service) put(ctx context.Context, n Number, j job.Job, why error) error {
	if err := s.progress(ctx, n, Order{Detail: words(why)}); err != nil {
		return errors.Join(why, err)
	}
	if errors.Is(why, errOpen) {
		return &job.Retry{After: openTime, Free: true, Cause: why}
	}
	if j.Last() {
		return &job.Retry{After: time.Hour, Free: true, Cause: why}
	}
	return why
}

// progress writes what is known of an order, or of a release, that is under way.
func (s *Service) progress(ctx context.Context, n Number, o Order) error {
	return s.db.Tx(ctx, func(tx db.Querier) error {
		const text = `UPDATE numbers SET status_detail = $3, monthly_cost = COALESCE($4, monthly_cost), capabilities = COALESCE($5, capabilities), updated_at = $6
			WHERE org_id = $1 AND id = $2 AND status = $7`
		if _, err := tx.Exec(ctx, text, n.OrgID, n.ID, db.Null(o.Detail), costText(o.MonthlyCost), o.can(), db.At(s.now()), n.Status); err != nil {
			return fmt.Errorf("note how far number is: %w", err)
		}
		return nil
	})
}

// settle ends the order of a number; number.allocated is told in the same transaction.
func (s *Service) settle(ctx context.Context, n Number, status string, o Order) error {
	return s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		now := db.At(s.now())
		const text = `UPDATE numbers SET status = $3, allocated_at = $4, updated_at = $5, monthly_cost = COALESCE($6, monthly_cost),
			capabilities = COALESCE($7, capabilities), status_detail = $8
			WHERE org_id = $1 AND id = $2 AND status IN ('pending', 'porting_in')`
		var allocated db.Time
		if status == "active" {
			allocated = now
		}
		r, err := tx.Exec(ctx, text, n.OrgID, n.ID, status, allocated, now, costText(o.MonthlyCost), o.can(), db.Null(o.Detail))
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

// can stores what is not known as NULL.
func (o Order) can() any {
	if len(o.Capabilities) == 0 {
		return nil
	}
	return db.AsJSON(o.Capabilities)
}

// costText stores no price as NULL.
func costText(c *Cost) any {
	if c == nil {
		return nil
	}
	return db.AsJSON(c)
}
