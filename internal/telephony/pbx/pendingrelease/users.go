// Package pendingrelease has the users whose phones have not confirmed the end of a call yet.
package pendingrelease

import (
	"sync"
	"time"
)

// Users tracks users with a phone that was rung here and has not yet answered our CANCEL or BYE. The
// database cannot tell this: the ringing row may not exist yet, and the end may be committed before the message is
// sent.
type Users struct {
	mu sync.Mutex // guards by
	by map[string]*userReleases
}

// userReleases holds the dialogs of one user. The key is the channel that closes when the dialog is over, the value
// the time limit. A zero time means that the call is not over.
type userReleases struct {
	until map[<-chan struct{}]time.Time
	kept  int // number of entries after the last prune
}

// maxReleaseWait is the longest wait for a phone that does not answer. It is the time in which a CANCEL or BYE may be
// repeated (RFC 3261 §17.1.2.2). Until then a lost message may still be on its way.
const maxReleaseWait = 33 * time.Second

// AddRinging records that a phone of a user rings. gone is closed when the phone has confirmed the end of the call.
func (g *Users) AddRinging(user string, gone <-chan struct{}) {
	g.add(user, gone, time.Time{})
}

// AddPlanned records that a user is about to be rung, until done is called. Finding the user's phones may still take
// time.
func (g *Users) AddPlanned(user string) (done func()) {
	gone := make(chan struct{})
	g.add(user, gone, time.Time{})
	return sync.OnceFunc(func() { close(gone) })
}

// AddEnded records that a call of a user has ended here.
func (g *Users) AddEnded(user string, gone <-chan struct{}) {
	g.add(user, gone, time.Now().Add(maxReleaseWait))
}

// add stores an entry, or replaces the entry of the same call. It prunes when as many entries have been added as were
// left by the last prune. Each entry is therefore checked about twice, independent of the number of calls of a user.
func (g *Users) add(user string, gone <-chan struct{}, until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.by == nil {
		g.by = map[string]*userReleases{}
	}
	p := g.by[user]
	if p == nil {
		p = &userReleases{until: map[<-chan struct{}]time.Time{}}
		g.by[user] = p
	}
	p.until[gone] = until
	if len(p.until) > 2*p.kept+minKeptReleases {
		p.prune()
	}
}

// minKeptReleases is the number of entries that are kept without a prune.
const minKeptReleases = 4

func (g *Users) Has(user string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.by[user]
	if p == nil {
		return false
	}
	if p.prune(); p.kept == 0 {
		delete(g.by, user)
		return false
	}
	return true
}

// prune removes the entries of calls that are over.
func (p *userReleases) prune() {
	now := time.Now()
	for gone, until := range p.until {
		select {
		case <-gone:
			delete(p.until, gone)
		default:
			if !until.IsZero() && !now.Before(until) {
				delete(p.until, gone)
			}
		}
	}
	p.kept = len(p.until)
}
