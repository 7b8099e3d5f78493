package server

import (
	"slices"
	"testing"
)

func TestBusyTimesBeginAtOnceAndEndAfterASecond(t *testing.T) {
	t.Parallel()
	const (
		little, much = busyAlloc, busyAlloc + 1
		small, large = roomyHeap - 1, roomyHeap
	)
	for _, c := range []struct {
		name  string
		looks [][2]uint64 // allocated since the look before, and in use
		want  []turn
	}{
		{"nothing", [][2]uint64{{0, small}, {little, small}, {little, large}}, []turn{same, same, same}},
		{"a busy time", [][2]uint64{{much, small}, {much, small}, {little, small}, {little, small}, {little, small}, {little, small}, {little, small}},
			[]turn{busy, same, same, same, same, calm, same}},
		{"a breath between", [][2]uint64{{much, small}, {little, small}, {little, small}, {little, small}, {much, small}, {little, small}, {little, small}, {little, small}, {little, small}, {much, small}},
			[]turn{busy, same, same, same, same, same, same, same, calm, busy}},
		{"a large heap", [][2]uint64{{much, large}, {much, large}}, []turn{same, same}},
		{"a heap that grows large", [][2]uint64{{much, small}, {much, large}, {much, large}, {much, large}, {much, large}, {much, large}, {little, large}},
			[]turn{busy, same, same, same, crowded, same, same}},
	} {
		l, made := workload{made: 1000, quiet: quietLooks}, uint64(1000)
		var got []turn
		for _, x := range c.looks {
			made += x[0]
			got = append(got, l.look(made, x[1]))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
