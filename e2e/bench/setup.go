package main

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// measureSetup measures the time from INVITE to 200 at 20 calls a second. The agents of this program make the calls,
// because the clock of sipp has a resolution of four milliseconds.
func (b *bench) measureSetup() error {
	b.title("INVITE to 200", "20 calls a second, the callee answers at once; ms")
	var rows [][]string
	best := [2]float64{math.Inf(1), math.Inf(1)} // best of the rounds, because the least busy one counts
	for round := range 2 {
		for _, s := range []subject{b.ours(), b.theirs(), {name: "nobody between", address: fmt.Sprintf("127.0.0.1:%d", calleePort),
			processes: []*process{}}} {
			if s.processes == nil {
				continue
			}
			took, failed, err := setups(s, 20*b.seconds, fmt.Sprintf("s%d-%d", round, time.Now().UnixNano()%1e9))
			if err != nil {
				return err
			}
			ms := func(i int) string { return fmt.Sprintf("%.2f", milliseconds(took[i])) }
			n := len(took)
			if s.name == ours {
				best[0] = min(best[0], milliseconds(took[n/2]))
				best[1] = min(best[1], milliseconds(took[(n-1)*99/100]))
			}
			rows = append(rows, []string{s.name, fmt.Sprint(n + failed), fmt.Sprint(failed), ms(n / 2), ms((n - 1) * 99 / 100), load()})
		}
	}
	b.table([]string{"what", "calls", "failed", "p50", "p99", "load"}, rows)
	b.atMost("INVITE → 200, p50", best[0], 1, " ms")
	b.atMost("INVITE → 200, p99", best[1], 2.5, " ms")
	return nil
}

// setups makes n calls, twenty a second, and returns the times until they were answered, sorted.
func setups(s subject, n int, mark string) (took []time.Duration, failed int, err error) {
	c, err := talk(s, 0, mark)
	defer c.end()
	if err != nil {
		return nil, 0, err
	}
	var mu sync.Mutex // guards took and failed
	var calls sync.WaitGroup
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for i := range n {
		<-tick.C
		calls.Go(func() {
			d, err := c.caller.dial(s.address, fmt.Sprintf("%s-%d", mark, i))
			mu.Lock()
			if err != nil {
				failed++
				mu.Unlock()
				return
			}
			took = append(took, d.took)
			mu.Unlock()
			<-time.After(talkTime)
			_ = d.bye()
		})
	}
	calls.Wait()
	if len(took) == 0 {
		return nil, failed, fmt.Errorf("no call through %s was answered", s.name)
	}
	slices.Sort(took)
	return took, failed, nil
}
