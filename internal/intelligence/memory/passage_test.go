package memory

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// turnsOfWords returns turns of so many words each; all words differ.
func turnsOfWords(lengths ...int) (turns []Turn) {
	word := 0
	for i, n := range lengths {
		var words []string
		for range n {
			words = append(words, fmt.Sprint("w", word))
			word++
		}
		turns = append(turns, Turn{Speaker: "Caller", Text: strings.Join(words, " "), StartMS: 1000 * i, EndMS: 1000*i + 900})
	}
	return turns
}

func TestSplitTranscript_PassageSizes(t *testing.T) {
	t.Parallel()
	led := passageLimits{minWords: 6, maxWords: 10, minRest: 2, overlap: 3}
	for _, c := range []struct {
		cut   passageLimits
		turns []int
		want  []int // words of each passage
	}{
		{defaultLimits, nil, nil},
		{defaultLimits, []int{5}, []int{5}},
		{defaultLimits, slices.Repeat([]int{10}, 30), []int{120, 120, 60}},
		{defaultLimits, slices.Repeat([]int{10}, 27), []int{120, 150}}, // a short rest
		{defaultLimits, []int{100, 110, 30}, []int{100, 140}},
		{defaultLimits, []int{450}, []int{200, 200, 50}},
		{led, []int{3, 3, 3, 3, 3}, []int{6, 9, 6}},
		{led, []int{3, 3, 1}, []int{7}},
		{led, []int{6, 6, 6}, []int{6, 6, 6}}, // a turn that is too long is not repeated
	} {
		var got []int
		for _, p := range c.cut.splitTranscript(turnsOfWords(c.turns...)) {
			got = append(got, len(strings.Fields(p.plain)))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("turns of %v words make passages of %v, want %v", c.turns, got, c.want)
		}
	}
	p := led.splitTranscript(turnsOfWords(3, 3, 3, 3))
	if len(p) != 2 || p[1].plain != "w3 w4 w5\nw6 w7 w8\nw9 w10 w11" || p[1].startMS != 1000 || p[1].endMS != 3900 {
		t.Errorf("the second passage is %+v", p)
	}
}
