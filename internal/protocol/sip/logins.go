package sip

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Limit of wrong passwords per account.

// guessLimiter limits password guessing at one account from many sources. Sources from which the account logged in
// before are never limited.
type logins struct {
	burst int

	mu  sync.Mutex // guards the fields below
	all map[string]*account
}

// accountLogins records the login attempts of an account.
type account struct {
	due   time.Duration // when the last wrong password is forgiven
	homes []netip.Addr  // sources of successful logins, the latest last
}

const (
	// guessInterval is the time after which one wrong password is forgiven.
	guessEvery  = 30 * time.Second
	maxHomes    = 8
	maxAccounts = 65536
)

// mayTry reports whether a login from a source is to be checked at all.
func (l *logins) may(id string, source netip.Addr, now time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.all[id]
	return a == nil || slices.Contains(a.homes, source) || a.due-now <= time.Duration(l.burst-1)*guessEvery
}

// recordFailure counts a wrong password.
func (l *logins) wrong(id string, source netip.Addr, now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.account(id); !slices.Contains(a.homes, source) {
		a.due = min(max(a.due, now)+guessEvery, now+time.Duration(l.burst)*guessEvery)
	}
}

// recordSuccess records the source of a successful login.
func (l *logins) right(id string, source netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.account(id)
	if n := len(a.homes); n > 0 && a.homes[n-1] == source {
		return
	}
	a.homes = append(slices.DeleteFunc(a.homes, func(h netip.Addr) bool { return h == source }), source)
	if over := len(a.homes) - maxHomes; over > 0 {
		a.homes = slices.Delete(a.homes, 0, over)
	}
}

func (l *logins) account(id string) *account {
	a := l.all[id]
	if a == nil {
		if l.all == nil || len(l.all) >= maxAccounts {
			l.all = make(map[string]*account)
		}
		a = &account{}
		l.all[id] = a
	}
	return a
}
