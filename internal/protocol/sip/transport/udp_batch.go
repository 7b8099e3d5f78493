package transport

import "slices"

// Batch of shards that a UDP reader has queued datagrams for.

// maxQueueBatch is the number of datagrams that a reader queues before it leaves them to the shards' goroutines.
const maxQueueBatch = 8

// queueBatch collects the shards that have unprocessed datagrams of a reader.
type queueBatch struct {
	due []Queue
	n   int // datagrams since the first shard was added
}

// add records a datagram and its shard, nil for none. It reports whether the first shard has waited for enough
// datagrams. Datagrams without a shard count too, otherwise a flood of them would delay the waiting shards.
func (g *queueBatch) add(to Queue) (full bool) {
	if to != nil && !slices.Contains(g.due, to) {
		g.due = append(g.due, to)
	}
	if len(g.due) > 0 {
		g.n++
	}
	return g.n >= maxQueueBatch
}

// drain calls it for all collected shards and clears the batch.
func (g *queueBatch) drain(it func(Queue)) {
	for i, q := range g.due {
		it(q)
		g.due[i] = nil
	}
	g.due, g.n = g.due[:0], 0
}
