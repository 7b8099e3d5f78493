package sip

import (
	"slices"
	"testing"
)

func TestShardBatch_IsBounded(t *testing.T) {
	t.Parallel()
	a, b := new(shard), new(shard)
	for name, came := range map[string][]*shard{
		"to one":             {a},
		"to two":             {b, a},
		"refused ones after": {a, nil, nil, nil, nil, nil, nil, nil},
	} {
		var g shardBatch
		for range 3 * maxShardBatch { // datagrams without a shard while the batch is empty
			if g.add(nil) {
				t.Errorf("%s: full, and nobody is due", name)
			}
		}
		for round := range 3 {
			for i := range maxShardBatch {
				if full := g.add(came[i%len(came)]); full != (i == maxShardBatch-1) {
					t.Errorf("%s, round %d, datagram %d: full %t", name, round, i, full)
				}
			}
			var rung []*shard
			g.drain(func(sh *shard) { rung = append(rung, sh) })
			want := slices.DeleteFunc(slices.Clone(came), func(sh *shard) bool { return sh == nil })
			if !slices.Equal(rung, want) {
				t.Errorf("%s, round %d: %d were due, want %d, each once, the first first", name, round, len(rung), len(want))
			}
		}
	}
}
