package digest

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Limit of wrong passwords per account.

// GuessLimiter limits password guessing at one account from many sources. Sources from which the account logged in
// before are never limited.
type GuessLimiter struct {
	burst int

	mu       sync.Mutex // guards the fields below
	accounts map[string]*accountLogins
}

// accountLogins records the login attempts of an account.
type accountLogins struct {
	forgivenAt   time.Duration // when the last wrong password is forgiven
	knownSources []netip.Addr  // sources of successful logins, the latest last
}

// NewGuessLimiter returns a limiter that lets an account guess burst times in a row.
func NewGuessLimiter(burst int) *GuessLimiter { return &GuessLimiter{burst: burst} }

const (
	// guessInterval is the time after which one wrong password is forgiven.
	guessInterval      = 30 * time.Second
	maxKnownSources    = 8
	maxTrackedAccounts = 65536
)

// MayTry reports whether a login from a source is to be checked at all.
func (l *GuessLimiter) MayTry(id string, source netip.Addr, now time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[id]
	return a == nil || slices.Contains(a.knownSources, source) || a.forgivenAt-now <= time.Duration(l.burst-1)*guessInterval
}

// RecordFailure counts a wrong password.
func (l *GuessLimiter) RecordFailure(id string, source netip.Addr, now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.entry(id); !slices.Contains(a.knownSources, source) {
		a.forgivenAt = min(max(a.forgivenAt, now)+guessInterval, now+time.Duration(l.burst)*guessInterval)
	}
}

// RecordSuccess records the source of a successful login.
func (l *GuessLimiter) RecordSuccess(id string, source netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.entry(id)
	if n := len(a.knownSources); n > 0 && a.knownSources[n-1] == source {
		return
	}
	a.knownSources = append(slices.DeleteFunc(a.knownSources, func(h netip.Addr) bool { return h == source }), source)
	if over := len(a.knownSources) - maxKnownSources; over > 0 {
		a.knownSources = slices.Delete(a.knownSources, 0, over)
	}
}

func (l *GuessLimiter) entry(id string) *accountLogins {
	a := l.accounts[id]
	if a == nil {
		if l.accounts == nil || len(l.accounts) >= maxTrackedAccounts {
			l.accounts = make(map[string]*accountLogins)
		}
		a = &accountLogins{}
		l.accounts[id] = a
	}
	return a
}
