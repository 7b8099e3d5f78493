package rtp

// delayEstimator measures how much later than the fastest packets of a source the others arrive, and derives the
// playout delay. Times are samples at the rate of the jitter buffer that owns it.
type delayEstimator struct {
	rate int64

	known       bool
	minTransit  int64    // least transit time of the current and the previous window
	windowMin   [2]int64 // least transit time: of the current window, of the previous one
	windowStart int64    // start of the current window, ns
	histogram   [delaySteps]float32
}

const (
	delaySteps    = 20           // of 10 ms
	delayWindow   = int64(2e9)   // ns
	delayMemory   = float32(250) // packets: five seconds
	delayQuantile = 0.98         // share of packets that should arrive in time
)

// restart forgets the timeline. It keeps the histogram of the network jitter.
func (d *delayEstimator) restart(transit, now int64) {
	d.known, d.minTransit, d.windowMin, d.windowStart = true, transit, [2]int64{transit, transit}, now
}

// add records one packet's transit time and returns by how much it exceeds the least one.
func (d *delayEstimator) add(transit, now int64) int64 {
	if now-d.windowStart > delayWindow {
		d.windowMin = [2]int64{transit, d.windowMin[0]}
		d.windowStart = now
	}
	d.windowMin[0] = min(d.windowMin[0], transit)
	d.minTransit = min(d.windowMin[0], d.windowMin[1])
	late := transit - d.minTransit
	step := min(late*100/d.rate, delaySteps-1)
	for i := range d.histogram {
		d.histogram[i] -= d.histogram[i] / delayMemory
	}
	d.histogram[step] += 1 / delayMemory
	return late
}

// target returns the playout delay: the 98 % quantile of lateness plus the 20 ms that are played at a time. It is 40
// to 230 ms.
func (d *delayEstimator) target() int64 {
	var total, sum float32
	for _, v := range d.histogram {
		total += v
	}
	step := int64(0)
	for i, v := range d.histogram {
		if sum += v; sum >= delayQuantile*total {
			step = int64(i)
			break
		}
	}
	return max(40, 30+10*step) * d.rate / 1000
}
