package guard

import (
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Sources that authenticated, and the phones registered at them.

// trustTable holds the sources that authenticated or are trunks, and the phones with live registrations at each. Only
// a correct password or a trunk adds an entry, so that nothing a stranger sends evicts one.
type trustTable struct {
	mu      sync.RWMutex // guards the fields below
	sources map[netip.Addr]*trustedSource
}

// trustedSource is one entry of the trustTable.
type trustedSource struct {
	until  time.Duration
	phones map[string]registeredPhone // by user name in lower case; nil if none registered
}

// registeredPhone is the live registration of one user name at a source.
type registeredPhone struct {
	until   time.Duration
	flow    netip.AddrPort // where it registered from
	account string         // id of its account; empty if unknown
}

const (
	// maxTrusted bounds the trustTable. With a full table the entries that ended are removed; none that lives is.
	maxTrusted = 1 << 18
	// maxPhonesOfSource bounds the phones of one source that are known by name.
	maxPhonesOfSource = 1 << 12
)

func (t *trustTable) init() { t.sources = make(map[netip.Addr]*trustedSource) }

func (t *trustTable) isTrusted(a netip.Addr, now time.Duration) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	s := t.sources[a]
	return s != nil && now < s.until
}

// entry returns the entry of a source, a new one if there is none, or nil if the table is full.
func (t *trustTable) entry(a netip.Addr, now time.Duration) *trustedSource {
	s := t.sources[a]
	if s != nil {
		return s
	}
	if len(t.sources) >= maxTrusted {
		t.removeEnded(now)
	}
	if len(t.sources) >= maxTrusted {
		return nil
	}
	s = &trustedSource{}
	t.sources[a] = s
	return s
}

func (t *trustTable) removeEnded(now time.Duration) {
	for a, s := range t.sources {
		if now >= s.until && !s.hasPhones(now) {
			delete(t.sources, a)
		}
	}
}

func (t *trustTable) trust(a netip.Addr, until, now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.entry(a, now); s != nil {
		s.until = max(s.until, until)
	}
}

func (t *trustTable) distrust(a netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.sources[a]; s != nil {
		s.until = 0
	}
}

// setPhone records the registration of a user name at a source, or with until 0 removes it.
func (t *trustTable) setPhone(a netip.Addr, user string, p registeredPhone, now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	user = strings.ToLower(user)
	if p.until <= now {
		if s := t.sources[a]; s != nil {
			delete(s.phones, user)
		}
		return
	}
	s := t.entry(a, now)
	if s == nil {
		return
	}
	if s.phones == nil {
		s.phones = make(map[string]registeredPhone)
	}
	if len(s.phones) >= maxPhonesOfSource {
		s.hasPhones(now)
	}
	if len(s.phones) < maxPhonesOfSource {
		s.phones[user] = p
	}
}

// hasPhones reports whether a registration lives, and removes those that ended.
func (s *trustedSource) hasPhones(now time.Duration) bool {
	for user, p := range s.phones {
		if now >= p.until {
			delete(s.phones, user)
		}
	}
	return len(s.phones) > 0
}

// phone returns the live registration of a user name at a source.
func (t *trustTable) phone(a netip.Addr, user string, now time.Duration) (registeredPhone, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	s := t.sources[a]
	if s == nil {
		return registeredPhone{}, false
	}
	p, ok := s.phones[strings.ToLower(user)]
	return p, ok && now < p.until
}

// hasAccount reports whether a live registration at a source is of this flow and account.
func (t *trustTable) hasAccount(a netip.Addr, want registeredPhone, now time.Duration) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	s := t.sources[a]
	if s == nil {
		return false
	}
	for _, p := range s.phones {
		if p.flow == want.flow && p.account == want.account && now < p.until {
			return true
		}
	}
	return false
}

// hasLivePhones reports whether any registration lives at a source.
func (t *trustTable) hasLivePhones(a netip.Addr, now time.Duration) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	s := t.sources[a]
	if s == nil {
		return false
	}
	for _, p := range s.phones {
		if now < p.until {
			return true
		}
	}
	return false
}
