package webhook

import (
	"testing"
	"time"

	"soniq/internal/platform/db"
)

var start = time.Date(2026, 1, 31, 9, 30, 0, 0, time.UTC)

func failedResult(at time.Time) attemptResult {
	return attemptResult{at: db.At(at), took: 100 * time.Millisecond, status: 500, fault: faultStatus}
}

func TestDecideRetry_TwelveAttempts(t *testing.T) {
	t.Parallel()
	for jitter, want := range map[float64]time.Duration{0.9: 63*time.Hour + 38*time.Minute, 1: 70*time.Hour + 42*time.Minute,
		1.1: 77*time.Hour + 46*time.Minute} {
		e, d, now := &endpoint{TimeoutSeconds: 15}, &delivery{}, start
		for d.FinishedAt.IsZero() {
			r := failedResult(now)
			decideRetry(e, d, r, jitter).apply(d, r, false)
			if d.FinishedAt.IsZero() {
				now = d.NextAt.Time
			}
			if d.Attempts > 100 {
				t.Fatal("no end")
			}
		}
		took := now.Sub(start)
		if d.Attempts != 12 || d.Status != exhausted || took < want || took > want+time.Minute {
			t.Errorf("jitter %v: %s after %d attempts and %s, want exhausted after 12 and %s", jitter, d.Status, d.Attempts, took, want)
		}
	}
}

func TestDecideRetry_JitterTenPercent(t *testing.T) {
	t.Parallel()
	low, high := 2.0, 0.0
	for range 10_000 {
		j := tenPercentJitter()
		low, high = min(low, j), max(high, j)
	}
	if low < 0.9 || high > 1.1 || low > 0.91 || high < 1.09 {
		t.Errorf("from %v to %v", low, high)
	}
}

func TestDecideRetry_Decisions(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		r         attemptResult
		status    string
		disables  bool
		atLeast   time.Duration
		unordered bool
	}{
		"200":             {r: attemptResult{status: 200}, status: succeeded},
		"204":             {r: attemptResult{status: 204}, status: succeeded},
		"200 and disable": {r: attemptResult{status: 200, deliveryControl: "disable"}, status: succeeded, disables: true},
		"500":             {r: attemptResult{status: 500}, status: retrying, atLeast: 5 * time.Second},
		"500 and disable": {r: attemptResult{status: 500, deliveryControl: " Disable "}, status: discarded, disables: true},
		"500 and abort":   {r: attemptResult{status: 500, deliveryControl: "abort-message"}, status: discarded},
		"410":             {r: attemptResult{status: 410}, status: discarded, disables: true},
		"401":             {r: attemptResult{status: 401}, status: retrying, atLeast: 5 * time.Second},
		"404":             {r: attemptResult{status: 404}, status: retrying, atLeast: 5 * time.Second},
		"301":             {r: attemptResult{status: 301}, status: retrying, atLeast: 5 * time.Second},
		"429, Retry-After 20": {r: attemptResult{status: 429, retryAfter: 20 * time.Second}, status: retrying, atLeast: 20 * time.Second,
			unordered: true},
		"503, Retry-After 1": {r: attemptResult{status: 503, retryAfter: time.Second}, status: retrying, atLeast: 5 * time.Second},
		"503, a week": {r: attemptResult{status: 503, retryAfter: 7 * 24 * time.Hour}, status: retrying, atLeast: 24 * time.Hour,
			unordered: true},
		"no answer for 15 s": {r: attemptResult{fault: faultTimeout, took: 15 * time.Second}, status: retrying, atLeast: 5 * time.Second,
			unordered: true},
		"connection refused":   {r: attemptResult{fault: faultConnect}, status: retrying, atLeast: 5 * time.Second},
		"no such host":         {r: attemptResult{fault: faultDNS}, status: retrying, atLeast: 5 * time.Second},
		"address not allowed":  {r: attemptResult{fault: faultBlocked}, status: retrying, atLeast: 5 * time.Second},
		"certificate is wrong": {r: attemptResult{fault: faultTLS}, status: retrying, atLeast: 5 * time.Second},
	} {
		x.r.at = db.At(start)
		if x.r.status != 0 {
			x.r.fault = faultOfStatus(x.r.status)
		}
		v := decideRetry(&endpoint{TimeoutSeconds: 15}, &delivery{}, x.r, 1)
		if v.status != x.status || (v.disableReason != "") != x.disables || v.retryAfter != x.atLeast || v.unordered != x.unordered {
			t.Errorf("%s: %+v, want %+v", name, v, x)
		}
		if o := decideRetry(&endpoint{TimeoutSeconds: 15, Ordered: true}, &delivery{}, x.r, 1); o.unordered {
			t.Errorf("%s: an ordered endpoint lets later events go", name)
		}
	}
}

func TestDecideRetry_OrderDelayThirtySeconds(t *testing.T) {
	t.Parallel()
	for _, timeout := range []int{1, 15, 30} {
		e, d := &endpoint{TimeoutSeconds: timeout}, &delivery{}
		for now := start; ; now = d.NextAt.Time {
			r := failedResult(now)
			v := decideRetry(e, d, r, 1.1)
			v.apply(d, r, false)
			if v.unordered {
				break
			}
			if next := d.NextAt.Add(time.Duration(timeout) * time.Second); next.Sub(start) > 30*time.Second {
				t.Errorf("timeout %d s: later events wait until %s", timeout, next.Sub(start))
			}
		}
	}
}

func TestDecideRetry_FailedProbeNotCounted(t *testing.T) {
	t.Parallel()
	d := &delivery{Held: true, Attempts: 3, CountedAttempts: 3, Status: retrying}
	r := failedResult(start)
	decideRetry(&endpoint{}, &delivery{}, r, 1).apply(d, r, true)
	if d.Attempts != 4 || d.CountedAttempts != 3 || !d.Held || d.Status != retrying {
		t.Errorf("%+v", d)
	}
}

func TestRetryAfter_SecondsOrDate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"": 0, "120": 2 * time.Minute, "-5": 0, "0": 0, "soon": 0, "1.5": 0, "99999999999999999999": 0, "9999999": 7 * 24 * time.Hour,
		"Sat, 31 Jan 2026 09:31:00 GMT": time.Minute, "Sat, 31 Jan 2026 09:29:00 GMT": 0,
	} {
		if got := retryAfter(text, start); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
