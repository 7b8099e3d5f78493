package call

import (
	"cmp"
	"slices"
)

// phoneSide selects the side of a call on which a phone number must match.
type phoneSide int

const (
	anySide phoneSide = iota
	callerSide
	calleeSide
)

// splitByPhoneSide returns the queries that make up the list. A filter by phone becomes two queries, one per side. Each can use an index
// in the order of the list, and no index covers both.
func (in Filters) splitByPhoneSide() []Filters {
	if in.Phone == "" {
		return []Filters{in}
	}
	from, to := in, in
	from.phoneSide, to.phoneSide = callerSide, calleeSide
	return []Filters{from, to}
}

// mergePages joins two lists that are sorted like the page and have no call in common, and returns the first n.
func mergePages(a, b []Call, column string, descending bool, n int) []Call {
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
