package call

import (
	"cmp"
	"slices"
)

// A side of calls is those that a number made, or those that were made to it.
type side int

const (
	either side = iota
	callers
	called
)

// sides are the lists that make up the one asked for. A phone on either side is two lists, each found in order by an index;
// no index finds both at once.
func (in Filters) sides() []Filters {
	if in.Phone == "" {
		return []Filters{in}
	}
	from, to := in, in
	from.side, to.side = callers, called
	return []Filters{from, to}
}

// merge joins two lists that are in the order of a page and have no call in common, and keeps the first n.
func merge(a, b []Call, column string, descending bool, n int) []Call {
	if len(a) == 0 {
		return b
	}
	at := position(column)
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(x, y Call) int {
		p, q := at(x), at(y)
		c := cmp.Or(cmp.Compare(p.Int, q.Int), cmp.Compare(p.ID, q.ID))
		if descending {
			return -c
		}
		return c
	})
	return all[:min(len(all), n)]
}
