package db

import "context"

// A Gatherer writes what the functions of a transaction gave it, all of it together: one statement for many rows in place of one for each.
// It is compared with ==.
type Gatherer interface {
	// Gathered writes items in the order in which they were given. It runs in the transaction of those who gave them, behind the last of
	// them; an error undoes the whole transaction.
	Gathered(ctx context.Context, tx Querier, items []any) error
}

// Gather has an item written before the transaction behind q commits, and never when the function that gave it is rolled back. On SQLite that
// may be together with those of other functions that share the commit: whoever is given to Tx or Swift sees what was given before it, and
// not what it gave itself. Where q is no transaction the item is written at once.
func Gather(ctx context.Context, q Querier, by Gatherer, item any) error {
	if t, ok := q.(*transaction); ok {
		t.gathered = append(t.gathered, gathered{by, item})
		return nil
	}
	return by.Gathered(ctx, q, []any{item})
}

type gathered struct {
	by   Gatherer
	item any
}

// flush writes what was gathered.
func (t *transaction) flush(ctx context.Context) error {
	var order []Gatherer
	by := map[Gatherer][]any{}
	for _, g := range t.gathered {
		if by[g.by] == nil {
			order = append(order, g.by)
		}
		by[g.by] = append(by[g.by], g.item)
	}
	t.gathered = nil
	for _, g := range order {
		err := guarded(t, func(t *transaction) error { return g.Gathered(ctx, t, by[g]) })
		if err != nil {
			return err
		}
	}
	return nil
}

// Attempt runs fn so that only what fn did is undone where it fails, and the transaction behind q goes on. Where q is no transaction fn is run as
// it is.
func Attempt(ctx context.Context, q Querier, fn func(tx Querier) error) error {
	if t, ok := q.(*transaction); ok {
		return t.nested(ctx, func(t *transaction) error { return fn(t) })
	}
	return fn(q)
}
