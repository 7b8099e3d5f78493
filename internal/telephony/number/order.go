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

// numberJobArgs holds the arguments of the jobs about a number.
type numberJobArgs struct {
	ID string `json:"id"`
}

// Handle registers the job handlers that follow orders and release numbers.
func (s *Service) Handle(r *job.Runner) {
	r.Handle(orderKind, s.FollowOrder)
	r.Handle(releaseKind, s.ReleaseAtProvider)
}

// orderRequest returns the request to the provider. Its idempotency key is the number's id.
func (n Number) orderRequest() OrderRequest {
	return OrderRequest{Org: n.OrgID, Number: n.Number, Ref: n.ID}
}

// takeFromSource sets the source of a new number without a trunk: the stock, else a provider. The number becomes
// active or pending.
func (s *Service) takeFromSource(ctx context.Context, tx db.Querier, o org.Organization, n *Number, name string) error {
	trunk, err := stockTrunk(ctx, tx, o.ID, n.Number)
	if err == nil && (name == "" || name == ProviderOwn) {
		n.Provider, n.TrunkID, n.provenAt = ProviderOwn, &trunk, n.CreatedAt
		return nil
	}
	if err != nil && !db.IsNone(err) {
		return fmt.Errorf("find number in stock: %w", err)
	}
	all, err := s.sources(ctx, tx, o)
	if err != nil {
		return err
	}
	for _, p := range all[1:] {
		if name == "" || name == p.name {
			n.Provider = p.name
			if p.account.ID != "" {
				n.account, n.TrunkID = db.Null(p.account.ID), &p.account.TrunkID
			}
			return s.placeOrder(n, p.api)
		}
	}
	return op.Invalid(op.Field("trunk_id", "required", "no provider sells this number here; name the trunk of a number you own"))
}

// placeOrder orders the number if the provider is an InstantProvider; otherwise a job places the order.
func (s *Service) placeOrder(n *Number, m ProviderAPI) error {
	n.Status, n.AllocatedAt = "pending", db.Time{}
	now, instant := m.(InstantProvider)
	if !instant {
		return nil
	}
	o, err := now.OrderNow(n.orderRequest())
	if errors.Is(err, ErrUnavailable) {
		return op.Fail("number_unavailable", n.Number+" is no longer available")
	}
	if err != nil {
		return fmt.Errorf("order number: %w", err)
	}
	n.MonthlyCost, n.after = o.MonthlyCost, o.After
	if o.Active {
		n.Status, n.AllocatedAt, n.provenAt = "active", n.CreatedAt, n.CreatedAt
	}
	return nil
}

// enqueueFollow enqueues the job that follows a pending order. Jobs about the same number run one after the other.
func (s *Service) enqueueFollow(ctx context.Context, tx db.Querier, n Number) error {
	return s.config.Jobs.Enqueue(ctx, tx, job.Spec{Org: n.OrgID, Queue: s.config.JobQueue, Lane: n.OrgID, Kind: orderKind,
		Args:  numberJobArgs{n.ID},
		RunAt: s.now().Add(n.after), UniqueKey: orderKind + " " + n.ID, OrderKey: "number " + n.ID})
}

// providerOf returns the API of the provider from which a number is bought.
func (s *Service) providerOf(ctx context.Context, n Number) (ProviderAPI, error) {
	if n.account == "" {
		if m := s.config.Providers[n.Provider]; m != nil {
			return m, nil
		}
		return nil, fmt.Errorf("there is no provider %s any more", n.Provider)
	}
	all, err := s.accounts(ctx, s.db.Read(ctx), n.OrgID)
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		if w := s.clientFor(a); a.ID == string(n.account) && w != nil {
			return w, nil
		}
	}
	return nil, fmt.Errorf("account %s at %s is gone", n.account, n.Provider)
}

// providerTimeout is the time limit of one request about an order.
const providerTimeout = 30 * time.Second

// FollowOrder requests the state of an order until the number is active or unavailable. If the provider is
// unreachable, the order is not abandoned, because the provider may have accepted it. Releasing the number cancels
// it.
func (s *Service) FollowOrder(ctx context.Context, j job.Job) error {
	n, err := s.jobNumber(ctx, j)
	if db.IsNone(err) || err == nil && n.Status != "pending" {
		return nil
	}
	if err != nil {
		return err
	}
	m, err := s.providerOf(ctx, n)
	if err != nil {
		return s.recordFailure(ctx, n, j, err)
	}
	asking, cancel := context.WithTimeout(ctx, providerTimeout)
	defer cancel()
	o, err := m.Order(asking, n.orderRequest())
	switch {
	case errors.Is(err, ErrUnavailable):
		return s.finishOrder(ctx, n, "failed", OrderStatus{Detail: errorText(err)})
	case err != nil:
		return s.recordFailure(ctx, n, j, err)
	case o.Active:
		return s.finishOrder(ctx, n, "active", o)
	}
	if err := s.writeProgress(ctx, n, o); err != nil {
		return err
	}
	return &job.Retry{After: orderPollDelay(o.After, s.now().Sub(n.CreatedAt.Time)), NotCounted: true,
		Cause: errors.New("the order is not carried out yet")}
}

// jobNumber reads the number of a job.
func (s *Service) jobNumber(ctx context.Context, j job.Job) (Number, error) {
	var ref numberJobArgs
	if err := j.Bind(&ref); err != nil {
		return Number{}, errors.Join(err, job.ErrDead)
	}
	return getNumber(ctx, s.db.Read(ctx), j.Org, ref.ID)
}

// orderPollDelay returns the delay before the next request. It grows with the order's age, up to 10 minutes, unless
// the provider asks for more.
func orderPollDelay(after, age time.Duration) time.Duration {
	return max(after, min(age/10, 10*time.Minute))
}

// recordFailure stores why a request to the provider failed, and returns the error with which the job is retried. The
// delay grows with the attempts. The job is never abandoned.
func (s *Service) recordFailure(ctx context.Context, n Number, j job.Job, why error) error {
	if err := s.writeProgress(ctx, n, OrderStatus{Detail: errorText(why)}); err != nil {
		return errors.Join(why, err)
	}
	if errors.Is(why, errCircuitOpen) {
		return &job.Retry{After: openTime, NotCounted: true, Cause: why}
	}
	if j.Last() {
		return &job.Retry{After: time.Hour, NotCounted: true, Cause: why}
	}
	return why
}

// writeProgress stores the state of an order or of a release in progress.
func (s *Service) writeProgress(ctx context.Context, n Number, o OrderStatus) error {
	return s.db.Tx(ctx, func(tx db.Querier) error {
		const text = `UPDATE numbers SET status_detail = $3, monthly_cost = COALESCE($4, monthly_cost),
			capabilities = COALESCE($5, capabilities), updated_at = $6
			WHERE org_id = $1 AND id = $2 AND status = $7`
		if _, err := tx.Exec(ctx, text, n.OrgID, n.ID, db.Null(o.Detail), costValue(o.MonthlyCost), o.capabilitiesValue(), db.At(s.now()),
			n.Status); err != nil {
			return fmt.Errorf("write progress of number: %w", err)
		}
		return nil
	})
}

// finishOrder stores the final status of an order. If it is active, number.allocated is published in the same
// transaction.
func (s *Service) finishOrder(ctx context.Context, n Number, status string, o OrderStatus) error {
	return s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		now := db.At(s.now())
		const text = `UPDATE numbers SET status = $3, allocated_at = $4, updated_at = $5, monthly_cost = COALESCE($6, monthly_cost),
			capabilities = COALESCE($7, capabilities), status_detail = $8, proven_at = $4
			WHERE org_id = $1 AND id = $2 AND status IN ('pending', 'porting_in')`
		var allocated db.Time
		if status == "active" {
			allocated = now
		}
		r, err := tx.Exec(ctx, text, n.OrgID, n.ID, status, allocated, now, costValue(o.MonthlyCost), o.capabilitiesValue(),
			db.Null(o.Detail))
		if err != nil {
			return fmt.Errorf("finish order of number: %w", err)
		}
		if changed, err := r.RowsAffected(); err != nil || changed == 0 || status != "active" {
			return err
		}
		if n, err = getNumber(ctx, tx, n.OrgID, n.ID); err != nil {
			return fmt.Errorf("read number: %w", err)
		}
		s.publishChanged(tx, n.Number)
		return s.publishAllocated(ctx, tx, n)
	})
}

// capabilitiesValue stores unknown capabilities as NULL.
func (o OrderStatus) capabilitiesValue() any {
	if len(o.Capabilities) == 0 {
		return nil
	}
	return db.AsJSON(o.Capabilities)
}

// costValue stores a nil cost as NULL.
func costValue(c *Cost) any {
	if c == nil {
		return nil
	}
	return db.AsJSON(c)
}
