package sip

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Outbound registration: refresh, back-off and removal.

const (
	maxBackoff        = 5 * time.Minute
	unregisterTimeout = 5 * time.Second // timeout of unregistering
)

// keepRefreshed refreshes a registration until ctx ends, then removes it.
func (r *ClientRegistration) keepRefreshed(ctx context.Context, wait time.Duration) {
	defer close(r.done)
	for sleepUntil(ctx, r.srv.done, wait) {
		err := r.registerOnce(ctx, r.request.Expires)
		if ctx.Err() != nil {
			break
		}
		wait = r.nextDelay(err)
		if r.request.OnChange != nil {
			r.request.OnChange(err)
		}
		r.reportAttempt(err, wait)
	}
	last, cancel := context.WithTimeout(r.srv.ctx, unregisterTimeout)
	defer cancel()
	if r.grantedExpires > 0 || r.seq > 0 && r.failures == 0 {
		r.err = r.registerOnce(last, 0)
		r.grantedExpires = 0
	}
	s := registrationStatusOf(r.err)
	s.Registered = false
	r.publishStatus(s)
}

// nextDelay returns the delay until the next attempt.
func (r *ClientRegistration) nextDelay(err error) time.Duration {
	if err == nil {
		r.failures = 0
		return r.refreshIn()
	}
	r.failures++
	return r.backoff(err)
}

// refreshIn returns half the granted lifetime, less up to a tenth of that at random.
func (r *ClientRegistration) refreshIn() time.Duration {
	half := r.grantedExpires / 2
	return max(half-rand.N(half/10+1), time.Second)
}

// backoff returns a delay that grows with each failure. It is longer after a permanent refusal, because the registrar
// may ban clients that seem to guess passwords.
func (r *ClientRegistration) backoff(err error) time.Duration {
	wait := min(r.request.Retry<<min(r.failures-1, 16), maxBackoff)
	var status *StatusError
	if errors.As(err, &status) && status.Status >= 400 && status.Status < 500 && status.Status != 408 {
		wait = min(12*r.request.Retry<<min(r.failures-1, 16), maxBackoff)
	}
	wait = max(wait, r.retryAfter)
	return wait - rand.N(wait/4+1)
}

func (r *ClientRegistration) reportAttempt(err error, next time.Duration) {
	s := registrationStatusOf(err)
	s.Expires, s.NextAttempt = r.grantedExpires, next
	if err != nil {
		s.Expires = 0
	}
	r.publishStatus(s)
}

func (r *ClientRegistration) publishStatus(s RegistrationStatus) {
	s.Registrar = r.flow.addr
	if r.request.OnStatus != nil {
		r.request.OnStatus(s)
	}
}

// registrationStatusOf converts the result of an attempt. A *StatusError gives status and reason, any other error its
// text.
func registrationStatusOf(err error) RegistrationStatus {
	if err == nil {
		return RegistrationStatus{Registered: true, Status: 200, Reason: reasonPhrase(200)}
	}
	var status *StatusError
	if errors.As(err, &status) {
		return RegistrationStatus{Status: status.Status, Reason: status.Reason}
	}
	return RegistrationStatus{Reason: err.Error()}
}

// sleepUntil waits d. It returns false if ctx or the server ended first.
func sleepUntil(ctx context.Context, done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-done:
	}
	return false
}
