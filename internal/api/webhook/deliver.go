package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
)

// Kinds of jobs.
const (
	deliverKind = "webhook.deliver"
	probeKind   = "webhook.probe"
	releaseKind = "webhook.release"
)

// releaseLane is the prefix of lanes in which held deliveries are released.
const releaseLane = "release|"

// Start starts the delivery workers. Deliveries in progress at a crash are retried (at-least-once).
func (s *Service) Start(ctx context.Context) error { return s.runner.Start(ctx) }

// Stop starts no further attempts and waits for those in progress, at most until the context ends.
func (s *Service) Stop(ctx context.Context) {
	s.runner.Stop(ctx)
	s.client.CloseIdleConnections()
}

// deliver makes one attempt at one delivery.
func (s *Service) deliver(ctx context.Context, j job.Job) error {
	var a deliverArgs
	if err := j.Bind(&a); err != nil {
		return fmt.Errorf("%w: %w", err, job.ErrDead)
	}
	d, err := getDelivery(ctx, s.cfg.DB.Read(ctx), j.Org, a.ID)
	switch {
	case db.IsNone(err):
		return nil
	case err != nil:
		return fmt.Errorf("read delivery: %w", err)
	case !d.FinishedAt.IsZero() || d.Held:
		return nil
	}
	e, err := s.cachedEndpoint(ctx, j.Org, d.WebhookID)
	switch {
	case err != nil:
		return err
	case e == nil: // deleted; the delivery was discarded with it
		return nil
	case e.Status != Active: // an active endpoint that is still holding is being released, including this delivery
		job.AtEnd(ctx, func(ctx context.Context, tx db.Querier) error { return s.hold(ctx, tx, d) })
		return nil
	}
	if ok, err := s.mayReceive(ctx, e, event.Kind(d.Kind)); err != nil {
		return err
	} else if !ok {
		job.AtEnd(ctx, func(ctx context.Context, tx db.Querier) error { return s.discard(ctx, tx, d) })
		return nil
	}
	if gone, err := s.discardUnseen(ctx, e, d); err != nil || gone {
		return err
	}
	r, err := s.send(ctx, e, d)
	if err != nil {
		return err
	}
	v := decideRetry(e, d, r, s.jitter())
	v.apply(d, r, false)
	s.countFailure(e, r)
	job.Report(ctx, outcome{e, d, r, v})
	return v.jobResult(d, r)
}

// discardUnseen discards a delivery whose call the endpoint's maker does not see any more, and reports whether it did.
func (s *Service) discardUnseen(ctx context.Context, e *endpoint, d *delivery) (bool, error) {
	sees, err := newCallSubjectCache().sees(ctx, s.cfg.DB.Read(ctx), e, d.CallID)
	if err != nil || sees {
		return false, err
	}
	const q = `UPDATE webhook_deliveries SET status = 'discarded', finished_at = $3, next_attempt_at = NULL, held = FALSE
		WHERE org_id = $1 AND id = $2 AND finished_at IS NULL`
	return true, s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		_, err := tx.Exec(ctx, q, d.Org, d.ID, s.time())
		return err
	})
}

// jobResult returns the result of the job: nil if the delivery is finished, or the retry.
func (v retryDecision) jobResult(d *delivery, r attemptResult) error {
	if v.isFinal() {
		return nil
	}
	return &job.Retry{After: v.retryAfter, Unordered: v.unordered,
		Cause: fmt.Errorf("attempt %d of delivery %s: %s", d.Attempts, d.ID, r.fault)}
}

// outcome is a finished attempt with the decision about it.
type outcome struct {
	endpoint *endpoint
	delivery *delivery // as after the attempt
	result   attemptResult
	decision retryDecision
}

// recordOutcomes stores attempts, in the transaction that ends their jobs.
func (s *Service) recordOutcomes(ctx context.Context, tx db.Querier, all []outcome) error {
	deliveries := make([]*delivery, len(all))
	for i, o := range all {
		deliveries[i] = o.delivery
	}
	if err := insertAttempts(ctx, tx, all); err != nil {
		return err
	}
	if err := updateDeliveries(ctx, tx, deliveries); err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b outcome) int {
		return strings.Compare(a.endpoint.ID,
			b.endpoint.ID)
	}) // a fixed lock order, so that two writers do not deadlock
	for _, o := range all {
		if err := s.applyOutcome(ctx, tx, o); err != nil {
			return err
		}
	}
	return nil
}

// recordReports calls recordOutcomes with the reports of the runner.
func (s *Service) recordReports(ctx context.Context, tx db.Querier, reports []any) error {
	all := make([]outcome, len(reports))
	for i, r := range reports {
		all[i] = r.(outcome)
	}
	return s.recordOutcomes(ctx, tx, all)
}

// hold holds a delivery until its endpoint recovers. If the endpoint is active again, the job is retried instead.
func (s *Service) hold(ctx context.Context, tx db.Querier, d *delivery) error {
	if err := event.LockOrder(ctx, tx); err != nil { // so that a release cannot miss it
		return err
	}
	e, err := getEndpoint(ctx, tx, d.Org, d.WebhookID)
	switch {
	case db.IsNone(err):
		return nil
	case err != nil:
		return fmt.Errorf("read webhook: %w", err)
	case e.Status == Active:
		s.endpointCaches.Delete(d.Org) // the cached endpoint is stale
		return &job.Retry{NotCounted: true, Cause: fmt.Errorf("endpoint %s is back", e.ID)}
	}
	return setHeld(ctx, tx, d.Org, d.ID, true, db.Time{})
}

// endpointArgs are the arguments of jobs about an endpoint.
type endpointArgs struct {
	ID string `json:"id"`
}

const probePause = time.Minute

// probe sends the oldest held event to a failing endpoint once a minute.
func (s *Service) probe(ctx context.Context, j job.Job) error {
	var a endpointArgs
	if err := j.Bind(&a); err != nil {
		return fmt.Errorf("%w: %w", err, job.ErrDead)
	}
	again := &job.Retry{After: probePause, NotCounted: true, Cause: fmt.Errorf("endpoint %s is failing", a.ID)}
	job.AtEnd(ctx, func(ctx context.Context, tx db.Querier) error {
		if e, err := getEndpoint(ctx, tx, j.Org, a.ID); err == nil && e.Status == Failing {
			return again
		} else if err != nil && !db.IsNone(err) {
			return err
		}
		return nil
	})
	return s.probeOnce(ctx, j.Org, a.ID)
}

func (s *Service) probeOnce(ctx context.Context, org, id string) error {
	e, err := s.endpoint(ctx, s.cfg.DB.Read(ctx), org, id)
	if err != nil || e == nil || e.Status != Failing {
		return err
	}
	held, err := listHeld(ctx, s.cfg.DB.Read(ctx), org, id, 1)
	if err != nil || len(held) == 0 {
		return err
	}
	d := held[0]
	if gone, err := s.discardUnseen(ctx, e, d); err != nil || gone {
		return err
	}
	r, err := s.send(ctx, e, d)
	if err != nil {
		return err
	}
	v := decideRetry(e, &delivery{}, r, 1) // a probe never exhausts the schedule
	v.apply(d, r, true)
	s.countFailure(e, r)
	return s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		return s.recordOutcomes(ctx, tx, []outcome{{e, d, r, v}})
	})
}

const releaseBatch = 200

// release enqueues the held deliveries of an endpoint in order. New deliveries are held until the last of them is
// enqueued.
func (s *Service) release(ctx context.Context, j job.Job) error {
	var a endpointArgs
	if err := j.Bind(&a); err != nil {
		return fmt.Errorf("%w: %w", err, job.ErrDead)
	}
	again := &job.Retry{NotCounted: true, Cause: fmt.Errorf("more deliveries of %s wait", a.ID)}
	done := false
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) (err error) {
		done, err = s.releaseBatchOnce(ctx, tx, j.Org, a.ID)
		return err
	})
	if err != nil {
		return err
	}
	if !done {
		return again
	}
	job.AtEnd(ctx, func(ctx context.Context, tx db.Querier) error { // the endpoint may have been paused and resumed meanwhile
		e, err := getEndpoint(ctx, tx, j.Org, a.ID)
		switch {
		case db.IsNone(err):
			return nil
		case err != nil:
			return fmt.Errorf("read webhook: %w", err)
		case e.Holding && e.Status == Active:
			return again
		}
		return nil
	})
	return nil
}

// releaseBatchOnce releases one batch. done reports that no held deliveries are left.
func (s *Service) releaseBatchOnce(ctx context.Context, tx db.Querier, org, id string) (done bool, err error) {
	if err := event.LockOrder(ctx, tx); err != nil { // so that no new delivery overtakes a held one
		return false, err
	}
	e, err := getEndpoint(ctx, tx, org, id)
	switch {
	case db.IsNone(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("read webhook: %w", err)
	case !e.Holding || e.Status != Active:
		return true, nil
	}
	held, err := listHeld(ctx, tx, org, id, releaseBatch)
	if err != nil {
		return false, err
	}
	if err := s.enqueue(ctx, tx, held...); err != nil {
		return false, err
	}
	for _, d := range held {
		if err := setHeld(ctx, tx, org, d.ID, false, s.time()); err != nil {
			return false, err
		}
	}
	if len(held) == releaseBatch {
		return false, nil
	}
	return true, endHolding(ctx, tx, org, id)
}
