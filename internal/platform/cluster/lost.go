package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"soniq/internal/platform/db"
)

// Lost is a node that was evicted.
type Lost struct {
	Node  string
	Alive time.Time // its last renewal
	epoch int64
	by    *Membership
}

// ErrNotEvicted is returned by Guard if the node has come back, or if another node closes its work at this moment.
var ErrNotEvicted = errors.New("the node is not evicted, or another node closes its work")

// Guard runs fn in a transaction during which the node stays evicted: its row is locked, so that its Join waits. It returns
// ErrNotEvicted without a call of fn if the node has come back, or if the row is locked by another node.
func (l Lost) Guard(ctx context.Context, fn func(ctx context.Context, tx db.Querier) error) error {
	return l.by.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		q := `SELECT epoch FROM nodes WHERE id = $1 AND epoch = $2 AND state = 'evicted'` + l.by.cfg.DB.SkipLocked()
		var epoch int64
		if err := tx.QueryRow(ctx, q, l.Node, l.epoch).Scan(&epoch); err != nil {
			if db.IsNone(err) {
				return ErrNotEvicted
			}
			return fmt.Errorf("lock node %s: %w", l.Node, err)
		}
		return fn(ctx, tx)
	})
}

// EvictAll evicts every node of the database, because the database was copied and the nodes in it belong to the original. The nodes
// of the copy close their work.
func EvictAll(ctx context.Context, tx db.Querier) error {
	const q = `UPDATE nodes SET state = 'evicted', epoch = epoch + 1 WHERE state = 'serving'`
	if _, err := tx.Exec(ctx, q); err != nil {
		return fmt.Errorf("evict the nodes of the original: %w", err)
	}
	return nil
}
