package limit

import (
	"context"
	"sync"
	"time"
)

// A Claim asks for one of the places that a limit gives to a party.
type Claim struct {
	Limit *Limit
	Key   string // the party; "" for a limit of the machine
}

// Gate counts the places that are taken at once. The zero value is ready for use. It is safe for concurrent use.
type Gate struct {
	mu      sync.Mutex // guards the fields below
	taken   map[Claim]int
	changed chan struct{} // closed when a place becomes free; nil if nobody waits
}

// Enter takes a place under all claims, or under none. It waits for at most patience. full is the limit that has no place left; then
// leave is nil.
// Call leave once.
func (g *Gate) Enter(ctx context.Context, patience time.Duration, claims ...Claim) (leave func(), full *Limit) {
	full, changed := g.take(claims)
	if full == nil {
		return g.leave(claims), nil
	}
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for full != nil {
		select {
		case <-changed:
			full, changed = g.take(claims)
		case <-timeout.C:
			full.Refuse()
			return nil, full
		case <-ctx.Done():
			return nil, full
		}
	}
	return g.leave(claims), nil
}

// take takes a place under all claims, or returns the limit without a place, and a channel that is closed at the next change.
func (g *Gate) take(claims []Claim) (full *Limit, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range claims {
		if g.taken[c] >= c.Limit.Int() {
			if g.changed == nil {
				g.changed = make(chan struct{})
			}
			return c.Limit, g.changed
		}
	}
	if g.taken == nil {
		g.taken = map[Claim]int{}
	}
	for _, c := range claims {
		g.taken[c]++
	}
	return nil, nil
}

// leave returns a function that gives the places back, once.
func (g *Gate) leave(claims []Claim) func() {
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, c := range claims {
			if g.taken[c]--; g.taken[c] <= 0 {
				delete(g.taken, c)
			}
		}
		if g.changed != nil {
			close(g.changed)
			g.changed = nil
		}
	})
}

// Taken returns the number of places that are taken under a claim.
func (g *Gate) Taken(c Claim) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.taken[c]
}
