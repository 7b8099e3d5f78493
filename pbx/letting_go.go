package pbx

import (
	"sync"
	"time"
)

// A lettingGo knows whose telephones have not confirmed yet that a call of theirs is over: a CANCEL or BYE is on its way.
type lettingGo struct {
	mu sync.Mutex // guards by
	by map[string][]parting
}

type parting struct {
	gone  <-chan struct{}
	until time.Time
}

// longestParting is how long a telephone is waited for that does not answer.
const longestParting = 5 * time.Second

func (g *lettingGo) add(user string, gone <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.by == nil {
		g.by = map[string][]parting{}
	}
	g.by[user] = append(left(g.by[user]), parting{gone, time.Now().Add(longestParting)})
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
			if time.Now().Before(p.until) {
				kept = append(kept, p)
			}
		}
	}
	return kept
}

// LettingGo reports whether a telephone of a user has yet to confirm that a call here is over: a CANCEL or BYE is on its way to it,
// and the next INVITE could overtake it. Five seconds are waited for one that says nothing.
func (sw *Switch) LettingGo(user string) bool { return sw.parting.is(user) }
