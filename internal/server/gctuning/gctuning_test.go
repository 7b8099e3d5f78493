package gctuning

import (
	"slices"
	"testing"
)

func TestLoadDetector_StartsAtOnceEndsAfterASecond(t *testing.T) {
	t.Parallel()
	const (
		little, much = busyAlloc, busyAlloc + 1
		small, large = roomyHeap - 1, roomyHeap
	)
	for _, c := range []struct {
		name  string
		looks [][2]uint64 // bytes allocated since the last sample, bytes in use
		want  []loadChange
	}{
		{"nothing", [][2]uint64{{0, small}, {little, small}, {little, large}}, []loadChange{same, same, same}},
		{"a busy time", [][2]uint64{{much, small}, {much, small}, {little, small}, {little, small}, {little, small}, {little, small},
			{little, small}},
			[]loadChange{busy, same, same, same, same, calm, same}},
		{"a breath between", [][2]uint64{{much, small}, {little, small}, {little, small}, {little, small}, {much, small}, {little, small},
			{little, small}, {little, small}, {little, small}, {much, small}},
			[]loadChange{busy, same, same, same, same, same, same, same, calm, busy}},
		{"a large heap", [][2]uint64{{much, large}, {much, large}}, []loadChange{same, same}},
		{"a heap that grows large", [][2]uint64{{much, small}, {much, large}, {much, large}, {much, large}, {much, large}, {much, large},
			{little, large}},
			[]loadChange{busy, same, same, same, crowded, same, same}},
	} {
		l, made := loadDetector{made: 1000, quiet: quietLooks}, uint64(1000)
		var got []loadChange
		for _, x := range c.looks {
			made += x[0]
			got = append(got, l.sample(made, x[1]))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
