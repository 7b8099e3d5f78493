package pbx

import (
	"slices"
	"sync"
	"time"
)

// A lettingGo knows whose telephones were rung here and have not confirmed yet that the call is over. That it rings at all may not be
// written down yet, and that it is over may be written down before the CANCEL or BYE has left.
type lettingGo struct {
	mu sync.Mutex // guards by
	by map[string][]parting
}

type parting struct {
	gone  <-chan struct{}
	until time.Time // zero: the call is not over
}

// longestParting is how long a telephone is waited for that does not answer: as long as a CANCEL or BYE may be repeated (RFC 3261
// §17.1.2.2). Until then one that was lost may still be on its way.
const longestParting = 33 * time.Second

// rings says that a telephone of a user is rung; gone is closed when it has confirmed that the call is over.
func (g *lettingGo) rings(user string, gone <-chan struct{}) { g.add(user, parting{gone: gone}) }

// about says that a user is about to be rung, until the function given back is called: their telephones may still have to be looked for.
func (g *lettingGo) about(user string) (done func()) {
	gone := make(chan struct{})
	g.add(user, parting{gone: gone})
	return sync.OnceFunc(func() { close(gone) })
}

// ends says that a call of a user is over here.
func (g *lettingGo) ends(user string, gone <-chan struct{}) {
	g.add(user, parting{gone, time.Now().Add(longestParting)})
}

// add keeps a parting, in place of what was known of the same call.
func (g *lettingGo) add(user string, p parting) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.by == nil {
		g.by = map[string][]parting{}
	}
	g.by[user] = append(slices.DeleteFunc(left(g.by[user]), func(x parting) bool { return x.gone == p.gone }), p)
}

func (g *lettingGo) is(user string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	kept := left(g.by[user])
	if len(kept) == 0 {
		delete(g.by, user)
		return false
	}
	g.by[user] = kept
	return true
}

// left are those of partings that are not over.
func left(all []parting) []parting {
	kept := all[:0]
	for _, p := range all {
		select {
		case <-p.gone:
		default:
			if p.until.IsZero() || time.Now().Before(p.until) {
				kept = append(kept, p)
			}
		}
	}
	return kept
}

// LettingGo reports whether a user is about to be rung here, or a telephone of theirs that was rung here rings still, is spoken on, or has yet to confirm that the call is
// over: a CANCEL or BYE is on its way to it, and the next INVITE could overtake it. One that says nothing is waited for as long as that is repeated.
func (sw *Switch) LettingGo(user string) bool { return sw.parting.is(user) }
