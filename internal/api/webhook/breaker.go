package webhook

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
)

const (
	maxConsecutiveFailures = 5                  // consecutive events with a failed first attempt
	disableAfter           = 5 * 24 * time.Hour // duration of failure after which an endpoint is disabled
	successWriteInterval   = 5 * time.Second    // between two writes of a success while the endpoint is healthy
	unprovenPerEndpoint    = 1                  // concurrent attempts at an endpoint without a success since its last failure
	maxUnproven            = maxWorkers * 3 / 4 // concurrent attempts at all such endpoints, so that workers remain for the others
)

// endpointHealth is the state of an endpoint as seen by this node. It avoids a database write per success. It is safe
// for concurrent use.
type endpointHealth struct {
	failures        atomic.Int64 // counted when observed, and again when stored
	clearedFailures atomic.Int64 // value of failures at the last stored success
	lastSuccess     atomic.Int64 // time of the last stored success, Unix nanoseconds
}

// isFailing reports whether this node saw a failure since the last stored success.
func (p *endpointHealth) isFailing() bool { return p.failures.Load() > p.clearedFailures.Load() }

// clear records that a success was stored when known failures had been counted. The counter never decreases.
func (p *endpointHealth) clear(known int64) {
	for old := p.clearedFailures.Load(); known > old && !p.clearedFailures.CompareAndSwap(old, known); old = p.clearedFailures.Load() {
	}
}

func (s *Service) healthOf(id string) *endpointHealth {
	if p, ok := s.healthByEndpoint.Load(id); ok {
		return p.(*endpointHealth)
	}
	p, _ := s.healthByEndpoint.LoadOrStore(id, &endpointHealth{})
	return p.(*endpointHealth)
}

func (s *Service) countFailure(e *endpoint, r attemptResult) {
	if !r.ok() {
		s.healthOf(e.ID).failures.Add(1)
	}
}

// seedHealth initialises the state from the stored times, unless this node has its own observations.
func (s *Service) seedHealth(e *endpoint) {
	if e.LastSuccess.After(e.LastFailure.Time) {
		s.healthOf(e.ID).lastSuccess.CompareAndSwap(0, 1)
	}
}

// isHealthy reports whether the last attempt at an endpoint, as seen by this node, succeeded.
func (p *endpointHealth) isHealthy() bool { return p.lastSuccess.Load() != 0 && !p.isFailing() }

// laneLimit returns the number of concurrent attempts for a lane of the queue. It limits a failing endpoint to few
// workers, and all failing endpoints together to a part of them.
func (s *Service) laneLimit(lane string) int {
	if strings.HasPrefix(lane, releaseLane) {
		return 1
	}
	p, ok := s.healthByEndpoint.Load(lane)
	switch {
	case ok && p.(*endpointHealth).isHealthy():
		return maxPerEndpoint
	case s.unprovenAttempts.Load() >= maxUnproven:
		return 0
	}
	return unprovenPerEndpoint
}

// trackUnproven counts an attempt at an endpoint that is not healthy until done is called.
func (s *Service) trackUnproven(id string) (done func()) {
	if s.healthOf(id).isHealthy() {
		return func() {}
	}
	s.unprovenAttempts.Add(1)
	return func() { s.unprovenAttempts.Add(-1) }
}

// applyOutcome stores the endpoint's counters, opens or closes its circuit breaker, and disables it if it asked for
// that.
func (s *Service) applyOutcome(ctx context.Context, tx db.Querier, o outcome) (err error) {
	if o.result.ok() {
		err = s.recordSuccess(ctx, tx, o.endpoint, o.result)
	} else {
		err = s.recordFailure(ctx, tx, o.endpoint, o.delivery.Attempts == 1, o.result)
	}
	if err != nil || o.decision.disableReason == "" {
		return err
	}
	return s.disable(ctx, tx, o.endpoint, o.decision.disableReason)
}

// recordSuccess resets the counters of failures, unless a failure came after the answer: answers may be stored in another order.
func (s *Service) recordSuccess(ctx context.Context, tx db.Querier, e *endpoint, r attemptResult) error {
	p := s.healthOf(e.ID)
	last, now, known := p.lastSuccess.Load(), r.at.UnixNano(), p.failures.Load()
	if known <= p.clearedFailures.Load() && now-last < int64(successWriteInterval) || !p.lastSuccess.CompareAndSwap(last, now) {
		return nil
	}
	const q = `UPDATE webhooks SET consecutive_failures = 0, failing_since = NULL, last_success_at = $3
		WHERE org_id = $1 AND id = $2 AND (last_failure_at IS NULL OR last_failure_at <= $3) RETURNING status`
	var status Status
	err := tx.QueryRow(ctx, q, e.Org, e.ID, r.at).Scan(&status)
	if db.IsNone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write success of webhook: %w", err)
	}
	db.OnCommit(tx, func() { p.clear(known) })
	if status != Failing {
		return nil
	}
	return s.closeBreaker(ctx, tx, e)
}

// closeBreaker sets the endpoint active. Held deliveries are released, and scheduled retries run now.
func (s *Service) closeBreaker(ctx context.Context, tx db.Querier, e *endpoint) error {
	if err := s.changeStatus(ctx, tx, e, Active, ""); err != nil {
		return err
	}
	if err := s.cfg.Queue.HurryLane(ctx, tx, queueName, e.Org, e.ID); err != nil {
		return err
	}
	return s.startRelease(ctx, tx, e)
}

func (s *Service) startRelease(ctx context.Context, tx db.Querier, e *endpoint) error {
	return s.cfg.Queue.Enqueue(ctx, tx, job.Spec{Org: e.Org, Queue: queueName, Lane: releaseLane + e.ID, Kind: releaseKind,
		Args: endpointArgs{e.ID}, MaxAttempts: unlimitedAttempts, UniqueKey: "release|" + e.ID})
}

func (s *Service) recordFailure(ctx context.Context, tx db.Querier, e *endpoint, first bool, r attemptResult) error {
	more := 0
	if first {
		more = 1
	}
	const q = `UPDATE webhooks SET consecutive_failures = consecutive_failures + $4,
			failing_since = COALESCE(failing_since, $3), last_failure_at = $3
		WHERE org_id = $1 AND id = $2 RETURNING status, consecutive_failures, failing_since`
	var status Status
	var failures int
	var since db.Time
	if err := tx.QueryRow(ctx, q, e.Org, e.ID, r.at, more).Scan(&status, &failures, &since); err != nil {
		return fmt.Errorf("write failure of webhook: %w", err)
	}
	s.healthOf(e.ID).failures.Add(1) // a success that was stored before is older than this failure
	switch {
	case status != Disabled && status != Paused && r.at.Sub(since.Time) >= disableAfter:
		return s.disable(ctx, tx, e, "deliveries have failed for five days")
	case status == Active && failures >= maxConsecutiveFailures:
		return s.openBreaker(ctx, tx, e, failures)
	}
	return nil
}

// openBreaker sets the endpoint failing and enqueues its probes.
func (s *Service) openBreaker(ctx context.Context, tx db.Querier, e *endpoint, failures int) error {
	err := s.changeStatus(ctx, tx, e, Failing, fmt.Sprintf("%d events in a row failed", failures))
	if err != nil {
		return err
	}
	return s.cfg.Queue.Enqueue(ctx, tx, job.Spec{Org: e.Org, Queue: queueName, Lane: "probe|" + e.ID, Kind: probeKind,
		Args: endpointArgs{e.ID}, RunAt: s.cfg.Clock.Now().Add(probePause), MaxAttempts: unlimitedAttempts, UniqueKey: "probe|" + e.ID})
}

func (s *Service) disable(ctx context.Context, tx db.Querier, e *endpoint, reason string) error {
	return s.changeStatus(ctx, tx, e, Disabled, reason)
}

// changeStatus sets a status and publishes it, unless it is unchanged. Deliveries are held until they are released.
func (s *Service) changeStatus(ctx context.Context, tx db.Querier, e *endpoint, to Status, reason string) error {
	failures, err := setStatus(ctx, tx, e.Org, e.ID, to, storedReason(to, reason))
	if db.IsNone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.publishStatus(ctx, tx, e, to, failures, reason)
}

// publishStatus publishes a new status: as an event, and on the bus at commit.
func (s *Service) publishStatus(ctx context.Context, tx db.Querier, e *endpoint, to Status, failures int, reason string) error {
	if s.cfg.Outbox != nil {
		err := s.cfg.Outbox.Publish(ctx, tx, e.Org, event.WebhookHealth{WebhookID: e.ID, Status: string(to), ConsecutiveFailures: failures,
			DisabledReason: db.Null(storedReason(to, reason)).Ptr(), At: s.time()})
		if err != nil {
			return err
		}
	}
	db.OnCommit(tx, func() {
		s.cfg.Log.Info("webhook changed", "org", e.Org, "webhook", e.ID, "status", string(to), "reason", reason)
		s.cfg.Bus.Publish(HealthSubject, StatusChange{e.Org, e.ID, to, reason})
	})
	return nil
}

// storedReason returns the reason to store with a status: only a disabled endpoint has one.
func storedReason(to Status, reason string) string {
	if to == Disabled {
		return reason
	}
	return ""
}
