package transport

import (
	"slices"
	"testing"
)

// testQueue is a queue that does nothing. It has a field, so that pointers to two of them differ.
type testQueue struct{ _ int }

func (q *testQueue) RunQueued(bool) {}
func (q *testQueue) Signal()        {}

func TestShardBatch_IsBounded(t *testing.T) {
	t.Parallel()
	a, b := new(testQueue), new(testQueue)
	for name, came := range map[string][]Queue{
		"to one":             {a},
		"to two":             {b, a},
		"refused ones after": {a, nil, nil, nil, nil, nil, nil, nil},
	} {
		var g queueBatch
		for range 3 * maxQueueBatch { // datagrams without a shard while the batch is empty
			if g.add(nil) {
				t.Errorf("%s: full, and nobody is due", name)
			}
		}
		for round := range 3 {
			for i := range maxQueueBatch {
				if full := g.add(came[i%len(came)]); full != (i == maxQueueBatch-1) {
					t.Errorf("%s, round %d, datagram %d: full %t", name, round, i, full)
				}
			}
			var rung []Queue
			g.drain(func(sh Queue) { rung = append(rung, sh) })
			want := slices.DeleteFunc(slices.Clone(came), func(sh Queue) bool { return sh == nil })
			if !slices.Equal(rung, want) {
				t.Errorf("%s, round %d: %d were due, want %d, each once, the first first", name, round, len(rung), len(want))
			}
		}
	}
}
