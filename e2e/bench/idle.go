package main

import (
	"fmt"
	"time"
)

// idleCalls is how many calls without audio are held while their memory is taken.
const idleCalls = 1000

// measureIdle takes the memory of calls that are up and silent, ours and the peer in turns.
func (b *bench) measureIdle() error {
	b.title("Memory of calls in progress", fmt.Sprintf("%d calls are up, nothing is said; KiB of the whole process beyond idle, of a process that carried one call before", idleCalls))
	var rows [][]string
	for _, try := range []struct {
		name     string
		recorded bool
		s        func() subject
	}{{ours, false, b.ours}, {"ours, recorded", true, b.ours}, {theirs, false, b.theirs}} {
		if b.only != "" && b.only != try.name {
			continue
		}
		if err := b.fresh(try.recorded); err != nil {
			return err
		}
		s := try.s()
		if s.processes == nil {
			continue
		}
		kib, err := hold(s, idleCalls)
		if err != nil {
			return err
		}
		if most := map[string]float64{ours: 60, "ours, recorded": 100}[try.name]; most > 0 {
			b.atMost("memory per silent call: "+try.name, kib, most, " KiB")
		}
		rows = append(rows, []string{try.name, fmt.Sprint(idleCalls), fmt.Sprintf("%.0f", kib), load()})
	}
	b.table([]string{"what", "calls", "KiB per call", "load"}, rows)
	return b.fresh(false)
}

// hold keeps n calls for a moment and returns the KiB of memory that each takes.
func hold(s subject, n int) (kib float64, err error) {
	mark := fmt.Sprintf("i%d", time.Now().UnixNano()%1e9)
	c, err := talk(s, 1, mark+"first") // what is loaded with the first call is not counted
	c.end()
	if err != nil {
		return 0, err
	}
	before := memory(s.processes...)
	if c, err = talk(s, n, mark); err == nil {
		<-time.After(2 * time.Second)
		kib = float64(memory(s.processes...)-before) / float64(n)
	}
	c.end()
	return kib, err
}
