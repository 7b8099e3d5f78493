package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// verdict is a figure beside its target.
type verdict struct {
	measure, target, figure string
	met                     bool
}

// atMost and atLeast record a figure beside its target.
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

// bound ends the whole run at its time limit or at an interrupt. It reports the measurements so far, and ends every
// process that was started.
func (b *bench) bound(limit time.Duration, interrupted <-chan os.Signal) {
	why := "the time is over"
	select {
	case <-time.After(limit):
	case <-interrupted:
		why = "interrupted"
	}
	fmt.Printf("\n%s: what follows was not measured\n", why)
	b.conclude()
	endFamily()
	b.clear()
	os.Exit(1)
}

// endFamily ends the child processes of this program and their children: with SIGTERM, and with SIGKILL after ten
// seconds.
func endFamily() {
	all := family(os.Getpid())[1:]
	for _, pid := range all {
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
	_ = until(10*time.Second, "the end of what was started", func() bool {
		for _, pid := range all {
			if alive(pid) {
				return false
			}
		}
		return true
	})
	for _, pid := range all {
		if alive(pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// alive reports whether a process runs. A zombie does not.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(b), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z")
}
