package sip

import "slices"

// gatherAtMost is how many datagrams a reader takes before what it gathered is left to the shards' goroutines.
const gatherAtMost = 8

// gathering is the shards that are due since a reader gathers.
type gathering struct {
	due []*shard
	n   int // datagrams since the first is due
}

// add notes a datagram and the shard it came to, nil for none, and tells whether the first has waited for enough of them: those that come to
// no shard count too, else a flood of them would hold up who is due.
func (g *gathering) add(to *shard) (full bool) {
	if to != nil && !slices.Contains(g.due, to) {
		g.due = append(g.due, to)
	}
	if len(g.due) > 0 {
		g.n++
	}
	return g.n >= gatherAtMost
}

// each does it for all that are due, and begins anew.
func (g *gathering) each(it func(*shard)) {
	for i, sh := range g.due {
		it(sh)
		g.due[i] = nil
	}
	g.due, g.n = g.due[:0], 0
}
