package digest

import (
	"crypto/sha256"
	"slices"
	"strings"
	"sync"
)

// Realms that credentials answer.

// RealmPins stores, for credentials at a host, the realms of the first challenge to a REGISTER and of the first to an INVITE. No other
// realm gets a response, so that the far end of a call cannot collect one made with a carrier's password. A pin lasts as long as the
// process; that of a REGISTER ends if its realm refuses the credentials.
type RealmPins struct {
	mu   sync.Mutex // guards pins
	pins map[pinKey][]string
}

// pinKey identifies a pin by method and by a hash of host and credentials, so that the password is not kept.
type pinKey struct {
	method string
	owner  [32]byte
}

// maxPins bounds the table. Only credentials that this server itself uses add to it.
const maxPins = 1 << 16

// NewRealmPins returns a table without pins.
func NewRealmPins() *RealmPins { return &RealmPins{pins: make(map[pinKey][]string)} }

func pinKeyOf(method, host string, c Credentials) pinKey {
	return pinKey{method, sha256.Sum256([]byte(strings.ToLower(host) + "\x00" + c.Username + "\x00" + c.Password))}
}

// learn returns the pinned realms of a method at a host, after pinning the given ones if there are none.
func (p *RealmPins) learn(method, host string, c Credentials, realms []string) []string {
	k := pinKeyOf(method, host, c)
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.pins[k]; len(known) > 0 {
		return known
	}
	if len(p.pins) >= maxPins {
		clear(p.pins)
	}
	p.pins[k] = realms
	if anywhere := pinKeyOf(k.method, "", c); anywhere != k {
		p.pins[anywhere] = append(p.pins[anywhere], realms...)
	}
	return realms
}

func (p *RealmPins) forget(k pinKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pins, k)
}

// of returns the realms pinned at a host by any method; without a host, those pinned anywhere for the credentials.
func (p *RealmPins) of(host string, c Credentials) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(slices.Clone(p.pins[pinKeyOf("REGISTER", host, c)]), p.pins[pinKeyOf("INVITE", host, c)]...)
}
