package pbx

import (
	"sync"
	"time"
)

// A lettingGo knows whose telephones were rung here and have not confirmed yet that the call is over. That it rings at all may not be
// written down yet, and that it is over may be written down before the CANCEL or BYE has left.
type lettingGo struct {
	mu sync.Mutex // guards by
	by map[string]*partings
}

// partings are those of one user: until when each is waited for, by what is closed when it is over. Zero: the call is not over.
type partings struct {
	until map[<-chan struct{}]time.Time
	kept  int // how many there were when those that are over were last let go of
}

// longestParting is how long a telephone is waited for that does not answer: as long as a CANCEL or BYE may be repeated (RFC 3261
// §17.1.2.2). Until then one that was lost may still be on its way.
const longestParting = 33 * time.Second

// rings says that a telephone of a user is rung; gone is closed when it has confirmed that the call is over.
func (g *lettingGo) rings(user string, gone <-chan struct{}) { g.add(user, gone, time.Time{}) }

// about says that a user is about to be rung, until the function given back is called: their telephones may still have to be looked for.
func (g *lettingGo) about(user string) (done func()) {
	gone := make(chan struct{})
	g.add(user, gone, time.Time{})
	return sync.OnceFunc(func() { close(gone) })
}

// ends says that a call of a user is over here.
func (g *lettingGo) ends(user string, gone <-chan struct{}) {
	g.add(user, gone, time.Now().Add(longestParting))
}

// add keeps a parting, in place of what was known of the same call. Those that are over are let go of when as many have come as were
// left the last time, so that each is looked at twice or so, however many calls a user has.
func (g *lettingGo) add(user string, gone <-chan struct{}, until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.by == nil {
		g.by = map[string]*partings{}
	}
	p := g.by[user]
	if p == nil {
		p = &partings{until: map[<-chan struct{}]time.Time{}}
		g.by[user] = p
	}
	p.until[gone] = until
	if len(p.until) > 2*p.kept+fewPartings {
		p.letGo()
	}
}

// fewPartings are kept whether they are over or not.
const fewPartings = 4

func (g *lettingGo) is(user string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.by[user]
	if p == nil {
		return false
	}
	if p.letGo(); p.kept == 0 {
		delete(g.by, user)
		return false
	}
	return true
}

// letGo forgets those that are over.
func (p *partings) letGo() {
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

// LettingGo reports whether a user is about to be rung here, or a telephone of theirs that was rung here rings still, is spoken on, or has yet to confirm that the call is
// over: a CANCEL or BYE is on its way to it, and the next INVITE could overtake it. One that says nothing is waited for as long as that is repeated.
func (sw *Switch) LettingGo(user string) bool { return sw.parting.is(user) }
