package main

import (
	"fmt"
	"time"
)

// idleCalls is the number of calls without audio that are up while memory is measured.
const idleCalls = 1000

// measureIdle measures the memory of calls that are up and silent, soniq and the peer in turns.
func (b *bench) measureIdle() error {
	b.title("Memory of calls in progress", fmt.Sprintf(
		"%d calls are up, nothing is said; KiB of the whole process beyond idle, of a process that carried one call before", idleCalls))
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
		kib, further, err := hold(s, idleCalls)
		if err != nil {
			return err
		}
		if most := map[string]float64{ours: 60, "ours, recorded": 100}[try.name]; most > 0 {
			b.atMost("memory per silent call: "+try.name, kib, most, " KiB")
		}
		rows = append(rows, []string{try.name, fmt.Sprint(idleCalls), fmt.Sprintf("%.0f", kib), fmt.Sprintf("%.0f", further), load()})
	}
	b.table([]string{"what", "calls", "KiB per call", "and for each of as many more", "load"}, rows)
	return b.fresh(false)
}

// hold keeps n calls for a moment, then as many more, and returns the KiB of memory that each takes. Some memory does not depend on the
// number of calls, such as the page cache of a database. It is in the first figure and not in the second.
func hold(s subject, n int) (kib, further float64, err error) {
	mark := fmt.Sprintf("i%d", time.Now().UnixNano()%1e9)
	c, err := talk(s, 1, mark+"first") // code and data loaded with the first call do not count
	c.end()
	if err != nil {
		return 0, 0, err
	}
	if c, err = talk(s, 0, mark); err != nil {
		c.end()
		return 0, 0, err
	}
	defer c.end()
	more := func(batch string) (kib float64, err error) {
		before := memory(s.processes...)
		if err = c.dial(s, n, mark+batch); err == nil {
			<-time.After(2 * time.Second)
			kib = float64(memory(s.processes...)-before) / float64(n)
		}
		return kib, err
	}
	if kib, err = more("a"); err == nil {
		further, err = more("b")
	}
	return kib, further, err
}
