package main

import (
	"fmt"
	"os"
	"time"
)

// A verdict is a figure beside its target.
type verdict struct {
	measure, target, figure string
	met                     bool
}

// atMost and atLeast take down how a figure stands to its target.
func (b *bench) atMost(measure string, figure, target float64, unit string) {
	b.judge(measure, fmt.Sprintf("≤ %v%s", target, unit), fmt.Sprintf("%.3g%s", figure, unit), figure <= target)
}

func (b *bench) atLeast(measure string, figure, target float64, unit string) {
	b.judge(measure, fmt.Sprintf("≥ %v%s", target, unit), fmt.Sprintf("%.4g%s", figure, unit), figure >= target)
}

func (b *bench) judge(measure, target, figure string, met bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.verdicts = append(b.verdicts, verdict{measure, target, figure, met})
}

// conclude prints every figure that has a target.
func (b *bench) conclude() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.verdicts) == 0 {
		return
	}
	b.title("Targets", fmt.Sprintf("after %s, load %s", time.Since(b.began).Round(time.Second), load()))
	var rows [][]string
	for _, v := range b.verdicts {
		rows = append(rows, []string{v.measure, v.target, v.figure, map[bool]string{true: "met", false: "**missed**"}[v.met]})
	}
	b.table([]string{"measure", "target", "figure", ""}, rows)
}

// bound ends the whole run when its time is over, or somebody interrupts it, with what was measured so far. The programs that
// were started end with this one.
func (b *bench) bound(limit time.Duration, interrupted <-chan os.Signal) {
	why := "the time is over"
	select {
	case <-time.After(limit):
	case <-interrupted:
		why = "interrupted"
	}
	fmt.Printf("\n%s: what follows was not measured\n", why)
	b.conclude()
	_ = os.RemoveAll(b.dir)
	os.Exit(1)
}
