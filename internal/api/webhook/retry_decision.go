package webhook

import (
	"math/rand/v2"
	"strings"
	"time"
)

// retrySchedule holds the pauses after the first, second … failed attempt: twelve attempts over 72 hours.
var retrySchedule = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour,
	3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 24 * time.Hour,
}

const (
	maxRetryAfter = 24 * time.Hour   // for a Retry-After
	maxOrderDelay = 30 * time.Second // how long a failing event delays later ones of its call
)

func tenPercentJitter() float64 { return 0.9 + 0.2*rand.Float64() }

// retryDecision is the decision after an attempt.
type retryDecision struct {
	status        string        // of the delivery
	retryAfter    time.Duration // until the next attempt, if status is retrying
	unordered     bool          // later events of the call may be sent now
	disableReason string        // reason to disable the endpoint, or ""
}

func (v retryDecision) isFinal() bool { return v.status != retrying }

// decideRetry decides according to the documented rules. d is the delivery before the attempt.
func decideRetry(e *endpoint, d *delivery, r attemptResult, jitter float64) retryDecision {
	control := strings.ToLower(strings.TrimSpace(r.deliveryControl))
	var v retryDecision
	switch {
	case r.status == 410:
		v.disableReason = "the endpoint answered 410 Gone"
	case control == "disable":
		v.disableReason = "the endpoint asked for it (webhook-delivery: disable)"
	}
	switch {
	case r.ok():
		v.status = succeeded
	case v.disableReason != "" || control == "abort-message":
		v.status = discarded
	case d.CountedAttempts+1 > len(retrySchedule):
		v.status = exhausted
	default:
		v.status = retrying
		v.retryAfter = time.Duration(float64(retrySchedule[d.CountedAttempts]) * jitter)
		v.retryAfter = max(v.retryAfter, min(r.retryAfter, maxRetryAfter))
		v.unordered = !e.Ordered && holdsTooLong(e, d, r, v.retryAfter)
	}
	return v
}

// holdsTooLong reports whether the next attempt could end more than 30 s after the start of the first.
func holdsTooLong(e *endpoint, d *delivery, r attemptResult, after time.Duration) bool {
	first := d.FirstAt
	if first.IsZero() {
		first = r.at
	}
	next := r.at.Add(r.took + after + time.Duration(e.TimeoutSeconds)*time.Second)
	return next.Sub(first.Time) > maxOrderDelay
}

// apply updates the delivery after an attempt. A failed probe does not count against the attempts.
func (v retryDecision) apply(d *delivery, r attemptResult, probe bool) {
	d.Attempts++
	d.ResponseStatus = r.status
	if d.FirstAt.IsZero() {
		d.FirstAt = r.at
	}
	end := r.at
	end.Time = end.Add(r.took)
	d.Status = v.status
	switch {
	case v.isFinal():
		d.FinishedAt, d.Held = end, false
		d.NextAt.Time = time.Time{}
	case !probe:
		d.NextAt = end
		d.NextAt.Time = end.Add(v.retryAfter)
	}
	if !probe && !r.ok() {
		d.CountedAttempts++
	}
}
