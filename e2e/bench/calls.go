package main

import (
	"cmp"
	"fmt"
	"time"
)

// talkTime is the duration of measured calls.
const talkTime = 500 * time.Millisecond

// step holds the result of calls at one rate.
type step struct {
	run
	Offered int
	CPU     float64       // seconds for 1,000 calls, until everything was durable
	Behind  time.Duration // until everything was durable, after the last call
	Missing int           // records or events that never came
	Load    string
	Whole   bool // sustained: at most one call in a thousand failed, and nothing is missing
}

// row returns the step as a row of a table.
func (s step) row(name string) []string {
	verdict := "yes"
	if !s.Whole {
		verdict = "no"
	}
	return []string{name, fmt.Sprint(s.Offered), fmt.Sprintf("%.0f", s.Rate), fmt.Sprintf("%d + %d of %d (%.2f %%)", s.Failed, s.Refused,
		s.Made, s.lost()),
		fmt.Sprint(s.Retransmitted), fmt.Sprintf("%.2f", s.CPU), fmt.Sprintf("%.1f s", s.Behind.Seconds()), fmt.Sprint(s.Missing), verdict,
		s.Load}
}

var stepHead = []string{"what", "calls/s offered", "made", "failed + refused", "repeated", "CPU s per 1,000", "durable after", "missing",
	"sustained", "load"}

// eventsOf returns the number of events of a call: started, answered, ended. A recorded call has two more: its
// recording is available, and a second end event with the state of the recording.
func eventsOf(recorded bool) int {
	if recorded {
		return 5
	}
	return 3
}

// climb makes calls at a rate for a time, through a platform or a peer.
func (b *bench) climb(s subject, rate int, recorded bool) (step, error) {
	if s.name == ours {
		if err := b.platform.quiet(); err != nil {
			return step{}, err
		}
	}
	answering, err := callee(b.dir)
	if err != nil {
		return step{}, err
	}
	defer answering.stop()
	var before records
	if s.name == ours {
		if before, err = b.platform.durable(); err != nil {
			return step{}, err
		}
	}
	out := step{Offered: rate, Load: load()}
	begun := cpu(s.processes...)
	out.run, err = makeCalls(b.dir, s.address, rate, rate*b.seconds, talkTime)
	if err != nil {
		return out, err
	}
	if s.name == ours {
		if out.Behind, out.Missing, err = b.settle(before, out.Good, recorded); err != nil {
			return out, err
		}
	}
	out.CPU = 1000 * (cpu(s.processes...) - begun).Seconds() / float64(max(out.Made, 1))
	out.Whole = out.lost() <= 0.1 && out.Missing == 0 && out.Rate >= 0.9*float64(rate)
	return out, nil
}

// settle waits until every successful call has its record and its events. It returns the time that took and the
// number missing.
func (b *bench) settle(before records, good int, recorded bool) (took time.Duration, missing int, err error) {
	began := time.Now()
	want := records{Ended: before.Ended + good, Events: before.Events + good*eventsOf(recorded), Recordings: before.Recordings}
	if recorded {
		want.Recordings += good
	}
	_ = until(90*time.Second, "records", func() bool {
		var now records
		if now, err = b.platform.durable(); err != nil {
			return true
		}
		missing = max(want.Ended-now.Ended, 0) + max(want.Events-now.Events, 0) + max(want.Recordings-now.Recordings, 0)
		return missing == 0
	})
	return time.Since(began), missing, err
}

// measureCalls raises the rate until calls fail, soniq and the peer in turns.
func (b *bench) measureCalls() error {
	b.title("Calls", fmt.Sprintf("sipp over UDP on loopback, a call from a trunk to a registered phone, %s long, %d s at each rate; all on the same two cores.", talkTime, b.seconds))
	var rows [][]string
	over, cost := map[string]bool{}, map[string]float64{}
	bare, err := b.barePassing()
	if err != nil {
		return err
	}
	defer bare.processes[0].stop()
	for _, rate := range b.rates {
		for _, try := range []struct {
			name     string
			s        subject
			recorded bool
		}{{ours, b.ours(), false}, {"ours, recorded", b.ours(), true}, {theirs, b.theirs(), false}, {floor, bare, false}} {
			if over[try.name] || try.s.processes == nil || b.only != "" && b.only != try.name {
				continue
			}
			if try.s.name == ours {
				if err := b.platform.record(try.recorded); err != nil {
					return err
				}
			}
			if try.recorded && !b.recordings {
				b.recordings = true
				b.sayDeleted()
			}
			got, err := b.climb(try.s, rate, try.recorded)
			if err != nil {
				return err
			}
			b.say("%s at %d/s: %+v", try.name, rate, got.row(try.name))
			over[try.name] = !got.Whole
			if got.Whole {
				b.sustained[try.name] = max(b.sustained[try.name], rate)
				cost[try.name] = got.CPU
			}
			rows = append(rows, got.row(try.name))
		}
	}
	b.table(stepHead, rows)
	for _, x := range []struct {
		name string
		rate float64
	}{{ours, 1500}, {"ours, recorded", 1000}} {
		if rate := b.sustained[x.name]; rate > 0 || b.only == "" || b.only == x.name {
			b.atLeast("calls/s sustained, durable: "+x.name, float64(rate), x.rate, "")
		}
	}
	if c, ok := cost[ours]; ok {
		b.atMost(fmt.Sprintf("CPU s per 1,000 calls, at %d/s", b.sustained[ours]), c, 0.7, " s")
	}
	return b.platform.record(false)
}

// overloads is the head of the overload table.
var overloads = []string{"what", "offered", "made", "answered", "refused (503)", "failed", "answered/s", "audio packets lost", "idle MB",
	"MB at the end", "MB a minute later", "load"}

// measureOverload offers one and a half times the sustained rate while other calls are up: to soniq, and to the peer.
func (b *bench) measureOverload() error {
	b.title("Overload", "One and a half times as many calls/s as were sustained (the lowest rate measured where none was), beside 50 calls with audio")
	var rows [][]string
	for _, s := range []subject{b.ours(), b.theirs()} {
		if s.processes == nil || b.only != "" && b.only != s.name {
			continue
		}
		row, err := b.overload(s, cmp.Or(b.sustained[s.name], b.rates[0]))
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	b.table(overloads, rows)
	return nil
}

// overload measures the overload of one subject.
func (b *bench) overload(s subject, rate int) (row []string, err error) {
	idle := memory(s.processes...)
	c, err := talk(s, 50, "steady")
	if err != nil {
		c.end()
		return nil, err
	}
	c.callee.close() // its calls stay up; sipp answers the new calls at its address
	answering, err := callee(b.dir)
	if err != nil {
		c.end()
		return nil, err
	}
	done := make(chan int, 1)
	seconds := time.Duration(b.seconds) * time.Second
	go func() { done <- play(c.streams, seconds) }()
	r, err := makeCalls(b.dir, s.address, rate*3/2, rate*3/2*b.seconds, talkTime)
	sent := <-done
	answering.stop()
	got := relayed{Sent: sent}
	got.measure(c.end())
	if err != nil {
		return nil, err
	}
	peak := memory(s.processes...)
	<-time.After(time.Minute)
	later := memory(s.processes...)
	if s.name == ours {
		b.atLeast(fmt.Sprintf("goodput at %d/s, of what is sustained", rate*3/2), float64(r.Good)/float64(b.seconds*rate), 0.9, "")
		b.atMost("audio packets lost in it, of calls in progress", float64(got.Lost), 0, "")
		b.atMost("memory a minute after it, beyond before", float64(later-idle)/1024, 10, " MB")
	}
	return []string{s.name, fmt.Sprint(rate * 3 / 2), fmt.Sprint(r.Made), fmt.Sprint(r.Good), fmt.Sprint(r.Refused), fmt.Sprint(r.Failed),
		fmt.Sprintf("%.0f", float64(r.Good)/float64(b.seconds)), fmt.Sprintf("%d of %d", got.Lost, got.Sent), fmt.Sprint(idle >> 10),
		fmt.Sprint(peak >> 10), fmt.Sprint(later >> 10), load()}, nil
}

// measureRelay measures the cost of relayed calls, soniq and the peer in turns.
func (b *bench) measureRelay() error {
	b.title("Audio", fmt.Sprintf("G.711, 20 ms, both directions, %d s; delay is from sending to receiving, the generator's own included (see without anybody between)", b.seconds))
	var rows [][]string
	add := func(name string, n int, r relayed) {
		row := []string{name, fmt.Sprint(n), fmt.Sprintf("%.3f", r.CPU), fmt.Sprintf("%.0f", r.KiB), fmt.Sprintf("%.2f", r.P50),
			fmt.Sprintf("%.2f", r.P99), fmt.Sprintf("%d of %d", r.Lost, r.Sent), load()}
		b.say("%v", row)
		rows = append(rows, row)
	}
	d := time.Duration(b.seconds) * time.Second
	for _, n := range b.calls {
		alone, err := direct(n, d)
		if err != nil {
			return err
		}
		add("without anybody between", n, alone)
		floor, err := b.bare(n, d)
		if err != nil {
			return err
		}
		add("received and sent, no more", n, floor)
		found := map[string]relayed{}
		for _, try := range []struct {
			name     string
			recorded bool
			s        func() subject
		}{{ours, false, b.ours}, {theirs, false, b.theirs}, {"ours, recorded", true, b.ours}, {theirs + ", packets captured", true,
			b.theirs}} {
			if err := b.fresh(try.recorded); err != nil {
				return err
			}
			s := try.s()
			if s.processes == nil {
				continue
			}
			r, err := relay(s, n, d, fmt.Sprintf("m%d", time.Now().UnixNano()%1e9))
			if err != nil {
				return err
			}
			add(try.name, n, r)
			found[try.name] = r
		}
		b.judgeRelay(n, alone, found)
	}
	b.table([]string{"what", "calls", "% of a core per call", "KiB per call", "p50 ms", "p99 ms", "packets lost", "load"}, rows)
	return b.fresh(false)
}

// judgeRelay compares the figures for one number of calls with the targets.
func (b *bench) judgeRelay(n int, alone relayed, found map[string]relayed) {
	plain, recorded := found[ours], found["ours, recorded"]
	name := fmt.Sprintf("relayed call, %d calls: ", n)
	if peer, ok := found[theirs]; ok {
		b.atMost(name+"% of a core, of the peer's", plain.CPU/peer.CPU, 1, "")
	}
	if peer, ok := found[theirs+", packets captured"]; ok {
		b.atMost(name+"% of a core recorded, of the peer's", recorded.CPU/peer.CPU, 1, "")
	}
	if n >= 500 {
		b.atMost(name+"% of a core", plain.CPU, 0.04, "")
		b.atMost(name+"% of a core recorded", recorded.CPU, 0.06, "")
		return
	}
	b.atMost(name+"delay added, p50", plain.P50-alone.P50, 0.1, " ms")
	b.atMost(name+"delay added, p99", plain.P99-alone.P99, 0.4, " ms")
	b.atMost(name+"memory", plain.KiB, 60, " KiB")
	b.atMost(name+"memory, recorded", recorded.KiB, 100, " KiB")
	b.atMost(name+"packets lost", float64(plain.Lost+recorded.Lost), 0, "")
}

// fresh restarts both, so that the memory of earlier calls does not count, with or without recording.
func (b *bench) fresh(recorded bool) error {
	b.close()
	if err := b.prepare("relay"); err != nil {
		return err
	}
	if b.peer != nil && recorded {
		b.peer.stop()
		if err := b.meet(true); err != nil {
			return err
		}
	}
	return b.platform.record(recorded)
}
