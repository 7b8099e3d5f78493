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
	failuresAllowed = 5                  // consecutive events with a failed first attempt
	patience        = 5 * 24 * time.Hour // duration of failure after which an endpoint is disabled
	successEvery    = 5 * time.Second    // between two writes of a success while the endpoint is healthy
	doubtedLimit    = 1                  // concurrent attempts at an endpoint without a success since its last failure
	doubtedMost     = maxWorkers * 3 / 4 // concurrent attempts at all such endpoints, so that workers remain for the others
)

// endpointHealth is the state of an endpoint as seen by this node. It avoids a database write per success. It is safe
// for concurrent use.
type pulse struct {
	failures atomic.Int64 // counted when observed, and again when stored
	cleared  atomic.Int64 // value of failures at the last stored success
	written  atomic.Int64 // time of the last stored success, Unix nanoseconds
}

// isFailing reports whether this node saw a failure since the last stored success.
func (p *pulse) troubled() bool { return p.failures.Load() > p.cleared.Load() }

// clear records that a success was stored when known failures had been counted. The counter never decreases.
func (p *pulse) clear(known int64) {
	for old := p.cleared.Load(); known > old && !p.cleared.CompareAndSwap(old, known); old = p.cleared.Load() {
	}
}

func (s *Service) pulse(id string) *pulse {
	if p, ok := s.pulses.Load(id); ok {
		return p.(*pulse)
	}
	p, _ := s.pulses.LoadOrStore(id, &pulse{})
	return p.(*pulse)
}

func (s *Service) noticed(e *endpoint, r result) {
	if !r.ok() {
		s.pulse(e.ID).failures.Add(1)
	}
}

// seedHealth initialises the state from the stored times, unless this node has its own observations.
func (s *Service) remember(e *endpoint) {
	if e.LastSuccess.After(e.LastFailure.Time) {
		s.pulse(e.ID).written.CompareAndSwap(0, 1)
	}
}

// isHealthy reports whether the last attempt at an endpoint, as seen by this node, succeeded.
func (p *pulse) proven() bool { return p.written.Load() != 0 && !p.troubled() }

// laneLimit returns the number of concurrent attempts for a lane of the queue. It limits a failing endpoint to few
// workers, and all failing endpoints together to a part of them.
func (s *Service) laneLimit(lane string) int {
	if strings.HasPrefix(lane, releaseLane) {
		return 1
	}
	p, ok := s.pulses.Load(lane)
	switch {
	case ok && p.(*pulse).proven():
		return perEndpoint
	case s.doubted.Load() >= doubtedMost:
		return 0
	}
	return doubtedLimit
}

// trackUnproven counts an attempt at an endpoint that is not healthy until done is called.
func (s *Service) doubt(id string) (done func()) {
	if s.pulse(id).proven() {
		return func() {}
	}
	s.doubted.Add(1)
	return func() { s.doubted.Add(-1) }
}

// applyOutcome stores the endpoint's counters, opens or closes its circuit breaker, and disables it if it asked for
// that.
func (s *Service) judged(ctx context.Context, tx db.Querier, o outcome) (err error) {
	if o.r.ok() {
		err = s.succeeded(ctx, tx, o.e, o.r)
	} else {
		err = s.failed(ctx, tx, o.e, o.d.Attempts == 1, o.r)
	}
	if err != nil || o.v.disable == "" {
		return err
	}
	return s.disable(ctx, tx, o.e, o.v.disable)
}

func (s *Service) succeeded(ctx context.Context, tx db.Querier, e *endpoint, r result) error {
	p := s.pulse(e.ID)
	last, now, known := p.written.Load(), r.at.UnixNano(), p.failures.Load()
	if known <= p.cleared.Load() && now-last < int64(successEvery) || !p.written.CompareAndSwap(last, now) {
		return nil
	}
	const q = `UPDATE webhooks SET consecutive_failures = 0, failing_since = NULL, last_success_at = $3
		WHERE org_id = $1 AND id = $2 RETURNING status`
	var status Status
	if err := tx.QueryRow(ctx, q, e.Org, e.ID, r.at).Scan(&status); err != nil {
		return fmt.Errorf("write success of webhook: %w", err)
	}
	db.OnCommit(tx, func() { p.clear(known) })
	if status != Failing {
		return nil
	}
	return s.recovered(ctx, tx, e)
}

// closeBreaker sets the endpoint active. Held deliveries are released, and scheduled retries run now.
func (s *Service) recovered(ctx context.Context, tx db.Querier, e *endpoint) error {
	if err := s.change(ctx, tx, e, Active, ""); err != nil {
		return err
	}
	if err := s.Queue.HurryLane(ctx, tx, queueName, e.Org, e.ID); err != nil {
		return err
	}
	return s.startRelease(ctx, tx, e)
}

func (s *Service) startRelease(ctx context.Context, tx db.Querier, e *endpoint) error {
	return s.Queue.Enqueue(ctx, tx, job.Spec{Org: e.Org, Queue: queueName, Lane: releaseLane + e.ID, Kind: releaseKind,
		Args: endpointArgs{e.ID}, MaxAttempts: many, UniqueKey: "release|" + e.ID})
}

func (s *Service) failed(ctx context.Context, tx db.Querier, e *endpoint, first bool, r result) error {
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
	s.pulse(e.ID).failures.Add(1) // a success that was stored before is older than this failure
	switch {
	case status != Disabled && status != Paused && r.at.Sub(since.Time) >= patience:
		return s.disable(ctx, tx, e, "deliveries have failed for five days")
	case status == Active && failures >= failuresAllowed:
		return s.trip(ctx, tx, e, failures)
	}
	return nil
}

// openBreaker sets the endpoint failing and enqueues its probes.
func (s *Service) trip(ctx context.Context, tx db.Querier, e *endpoint, failures int) error {
	err := s.change(ctx, tx, e, Failing, fmt.Sprintf("%d events in a row failed", failures))
	if err != nil {
		return err
	}
	return s.Queue.Enqueue(ctx, tx, job.Spec{Org: e.Org, Queue: queueName, Lane: "probe|" + e.ID, Kind: probeKind,
		Args: endpointArgs{e.ID}, RunAt: s.Now().Add(probePause), MaxAttempts: many, UniqueKey: "probe|" + e.ID})
}

func (s *Service) disable(ctx context.Context, tx db.Querier, e *endpoint, reason string) error {
	return s.change(ctx, tx, e, Disabled, reason)
}

// changeStatus sets a status and publishes it, unless it is unchanged. Deliveries are held until they are released.
func (s *Service) change(ctx context.Context, tx db.Querier, e *endpoint, to Status, reason string) error {
	failures, err := setStatus(ctx, tx, e.Org, e.ID, to, kept(to, reason))
	if db.IsNone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.announce(ctx, tx, e, to, failures, reason)
}

// publishStatus publishes a new status: as an event, and on the bus at commit.
func (s *Service) announce(ctx context.Context, tx db.Querier, e *endpoint, to Status, failures int, reason string) error {
	if s.Outbox != nil {
		err := s.Outbox.Publish(ctx, tx, e.Org, event.WebhookHealth{WebhookID: e.ID, Status: string(to), ConsecutiveFailures: failures,
			DisabledReason: db.Null(kept(to, reason)).Ptr(), At: s.time()})
		if err != nil {
			return err
		}
	}
	db.OnCommit(tx, func() {
		s.Log.Info("webhook changed", "org", e.Org, "webhook", e.ID, "status", string(to), "reason", reason)
		s.Bus.Publish(HealthSubject, Change{e.Org, e.ID, to, reason})
	})
	return nil
}

// storedReason returns the reason to store with a status: only a disabled endpoint has one.
func kept(to Status, reason string) string {
	if to == Disabled {
		return reason
	}
	return ""
}
