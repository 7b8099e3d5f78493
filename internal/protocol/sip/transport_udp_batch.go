package sip

import "slices"

// Batch of shards that a UDP reader has queued datagrams for.

// maxShardBatch is the number of datagrams that a reader queues before it leaves them to the shards' goroutines.
const maxShardBatch = 8

// shardBatch collects the shards that have unprocessed datagrams of a reader.
type shardBatch struct {
	due []*shard
	n   int // datagrams since the first shard was added
}

// add records a datagram and its shard, nil for none. It reports whether the first shard has waited for enough
// datagrams. Datagrams without a shard count too, otherwise a flood of them would delay the waiting shards.
func (g *shardBatch) add(to *shard) (full bool) {
	if to != nil && !slices.Contains(g.due, to) {
		g.due = append(g.due, to)
	}
	if len(g.due) > 0 {
		g.n++
	}
	return g.n >= maxShardBatch
}

// drain calls it for all collected shards and clears the batch.
func (g *shardBatch) drain(it func(*shard)) {
	for i, sh := range g.due {
		it(sh)
		g.due[i] = nil
	}
	g.due, g.n = g.due[:0], 0
}
