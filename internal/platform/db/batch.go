package db

import "context"

// Batcher writes the items of several functions with one statement instead of one statement per item. It is compared
// with ==.
type Batcher interface {
	// WriteBatch writes items in the order in which they were added. It runs in the transaction after the functions
	// that added them. An error rolls back the whole transaction.
	WriteBatch(ctx context.Context, tx Querier, items []any) error
}

// Batch adds an item that is written before the transaction behind q commits. The item is dropped if the function
// that added it is rolled back. On SQLite the items of all functions that share the commit may be written together. A
// later Tx or TxRelaxed sees the items added before it, but not its own. If q is not a transaction, the item is
// written at once.
func Batch(ctx context.Context, q Querier, by Batcher, item any) error {
	if t, ok := q.(*transaction); ok {
		t.batched = append(t.batched, batchedItem{by, item})
		return nil
	}
	return by.WriteBatch(ctx, q, []any{item})
}

type batchedItem struct {
	batcher Batcher
	item    any
}

// flush writes the batched items.
func (t *transaction) flush(ctx context.Context) error {
	var order []Batcher
	by := map[Batcher][]any{}
	for _, g := range t.batched {
		if by[g.batcher] == nil {
			order = append(order, g.batcher)
		}
		by[g.batcher] = append(by[g.batcher], g.item)
	}
	t.batched = nil
	for _, g := range order {
		err := guarded(t, func(t *transaction) error { return g.WriteBatch(ctx, t, by[g]) })
		if err != nil {
			return err
		}
	}
	return nil
}

// Savepoint runs fn in a savepoint: if fn fails, only its changes are undone, and the transaction behind q continues.
// If q is not a transaction, fn runs directly.
func Savepoint(ctx context.Context, q Querier, fn func(tx Querier) error) error {
	if t, ok := q.(*transaction); ok {
		return t.nested(ctx, func(t *transaction) error { return fn(t) })
	}
	return fn(q)
}
