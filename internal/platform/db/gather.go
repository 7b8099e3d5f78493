package db

import "context"

// Batcher writes the items of several functions with one statement instead of one statement per item. It is compared
// with ==.
type Gatherer interface {
	// WriteBatch writes items in the order in which they were added. It runs in the transaction after the functions
	// that added them. An error rolls back the whole transaction.
	Gathered(ctx context.Context, tx Querier, items []any) error
}

// Batch adds an item that is written before the transaction behind q commits. The item is dropped if the function
// that added it is rolled back. On SQLite the items of all functions that share the commit may be written together. A
// later Tx or TxRelaxed sees the items added before it, but not its own. If q is not a transaction, the item is
// written at once.
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

// flush writes the batched items.
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

// Savepoint runs fn in a savepoint: if fn fails, only its changes are undone, and the transaction behind q continues.
// If q is not a transaction, fn runs directly.
func Attempt(ctx context.Context, q Querier, fn func(tx Querier) error) error {
	if t, ok := q.(*transaction); ok {
		return t.nested(ctx, func(t *transaction) error { return fn(t) })
	}
	return fn(q)
}
