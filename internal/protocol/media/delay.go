package media

// delayEstimator measures how much later than the fastest packets of a source the others arrive, and derives the
// playout delay. Times are samples at the rate of the jitter buffer that owns it.
type delay struct {
	rate int64

	known     bool
	base      int64    // least transit time of the current and the previous window
	window    [2]int64 // least transit time: of the current window, of the previous one
	since     int64    // start of the current window, ns
	histogram [delaySteps]float32
}

const (
	delaySteps  = 20           // of 10 ms
	delayWindow = int64(2e9)   // ns
	delayMemory = float32(250) // packets: five seconds
	delayKept   = 0.98         // share of packets that should arrive in time
)

// restart forgets the timeline. It keeps the histogram of the network jitter.
func (d *delay) restart(transit, now int64) {
	d.known, d.base, d.window, d.since = true, transit, [2]int64{transit, transit}, now
}

// add records one packet's transit time and returns by how much it exceeds the least one.
func (d *delay) add(transit, now int64) int64 {
	if now-d.since > delayWindow {
		d.window = [2]int64{transit, d.window[0]}
		d.since = now
	}
	d.window[0] = min(d.window[0], transit)
	d.base = min(d.window[0], d.window[1])
	late := transit - d.base
	step := min(late*100/d.rate, delaySteps-1)
	for i := range d.histogram {
		d.histogram[i] -= d.histogram[i] / delayMemory
	}
	d.histogram[step] += 1 / delayMemory
	return late
}

// target returns the playout delay: the 98 % quantile of lateness plus the 20 ms that are played at a time. It is 40
// to 230 ms.
func (d *delay) target() int64 {
	var total, sum float32
	for _, v := range d.histogram {
		total += v
	}
	step := int64(0)
	for i, v := range d.histogram {
		if sum += v; sum >= delayKept*total {
			step = int64(i)
			break
		}
	}
	return max(40, 30+10*step) * d.rate / 1000
}
