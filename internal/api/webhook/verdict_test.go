package webhook

import (
	"testing"
	"time"

	"soniq/internal/platform/db"
)

var start = time.Date(2026, 1, 31, 9, 30, 0, 0, time.UTC)

func failure(at time.Time) result {
	return result{at: db.At(at), took: 100 * time.Millisecond, status: 500, fault: faultStatus}
}

func TestTwelveAttemptsOverThreeDays(t *testing.T) {
	t.Parallel()
	for jitter, want := range map[float64]time.Duration{0.9: 63*time.Hour + 38*time.Minute, 1: 70*time.Hour + 42*time.Minute, 1.1: 77*time.Hour + 46*time.Minute} {
		e, d, now := &endpoint{TimeoutSeconds: 15}, &delivery{}, start
		for d.FinishedAt.IsZero() {
			r := failure(now)
			judge(e, d, r, jitter).apply(d, r, false)
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

func TestJitterIsTenPercent(t *testing.T) {
	t.Parallel()
	low, high := 2.0, 0.0
	for range 10_000 {
		j := tenPercent()
		low, high = min(low, j), max(high, j)
	}
	if low < 0.9 || high > 1.1 || low > 0.91 || high < 1.09 {
		t.Errorf("from %v to %v", low, high)
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		r         result
		status    string
		disables  bool
		atLeast   time.Duration
		unordered bool
	}{
		"200":                  {r: result{status: 200}, status: succeeded},
		"204":                  {r: result{status: 204}, status: succeeded},
		"200 and disable":      {r: result{status: 200, control: "disable"}, status: succeeded, disables: true},
		"500":                  {r: result{status: 500}, status: retrying, atLeast: 5 * time.Second},
		"500 and disable":      {r: result{status: 500, control: " Disable "}, status: discarded, disables: true},
		"500 and abort":        {r: result{status: 500, control: "abort-message"}, status: discarded},
		"410":                  {r: result{status: 410}, status: discarded, disables: true},
		"401":                  {r: result{status: 401}, status: retrying, atLeast: 5 * time.Second},
		"404":                  {r: result{status: 404}, status: retrying, atLeast: 5 * time.Second},
		"301":                  {r: result{status: 301}, status: retrying, atLeast: 5 * time.Second},
		"429, Retry-After 20":  {r: result{status: 429, retryAfter: 20 * time.Second}, status: retrying, atLeast: 20 * time.Second, unordered: true},
		"503, Retry-After 1":   {r: result{status: 503, retryAfter: time.Second}, status: retrying, atLeast: 5 * time.Second},
		"503, a week":          {r: result{status: 503, retryAfter: 7 * 24 * time.Hour}, status: retrying, atLeast: 24 * time.Hour, unordered: true},
		"no answer for 15 s":   {r: result{fault: faultTimeout, took: 15 * time.Second}, status: retrying, atLeast: 5 * time.Second, unordered: true},
		"connection refused":   {r: result{fault: faultConnect}, status: retrying, atLeast: 5 * time.Second},
		"no such host":         {r: result{fault: faultDNS}, status: retrying, atLeast: 5 * time.Second},
		"address not allowed":  {r: result{fault: faultBlocked}, status: retrying, atLeast: 5 * time.Second},
		"certificate is wrong": {r: result{fault: faultTLS}, status: retrying, atLeast: 5 * time.Second},
	} {
		x.r.at = db.At(start)
		if x.r.status != 0 {
			x.r.fault = faultOfStatus(x.r.status)
		}
		v := judge(&endpoint{TimeoutSeconds: 15}, &delivery{}, x.r, 1)
		if v.status != x.status || (v.disable != "") != x.disables || v.after != x.atLeast || v.unordered != x.unordered {
			t.Errorf("%s: %+v, want %+v", name, v, x)
		}
		if o := judge(&endpoint{TimeoutSeconds: 15, Ordered: true}, &delivery{}, x.r, 1); o.unordered {
			t.Errorf("%s: an ordered endpoint lets later events go", name)
		}
	}
}

func TestFailingEventHoldsLaterOnesForThirtySecondsAtMost(t *testing.T) {
	t.Parallel()
	for _, timeout := range []int{1, 15, 30} {
		e, d := &endpoint{TimeoutSeconds: timeout}, &delivery{}
		for now := start; ; now = d.NextAt.Time {
			r := failure(now)
			v := judge(e, d, r, 1.1)
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

func TestFailedProbeSpendsNoAttempt(t *testing.T) {
	t.Parallel()
	d := &delivery{Held: true, Attempts: 3, Spent: 3, Status: retrying}
	r := failure(start)
	judge(&endpoint{}, &delivery{}, r, 1).apply(d, r, true)
	if d.Attempts != 4 || d.Spent != 3 || !d.Held || d.Status != retrying {
		t.Errorf("%+v", d)
	}
}

func TestRetryAfterIsSecondsOrADate(t *testing.T) {
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
