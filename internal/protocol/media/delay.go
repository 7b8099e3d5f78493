package media

// delay finds out how much later than the quickest packets of a source the
// others come, and from that how long to wait for them. Times are samples at
// the rate of the playout that owns it.
type delay struct {
	rate int64

	known     bool
	base      int64    // least transit of this window and the last
	window    [2]int64 // least transit: of the running window, of the one before
	since     int64    // when the running one began, ns
	histogram [delaySteps]float32
}

const (
	delaySteps  = 20           // of 10 ms
	delayWindow = int64(2e9)   // ns
	delayMemory = float32(250) // packets: five seconds
	delayKept   = 0.98         // share of the packets that should be in time
)

// restart forgets the time line but not how much the network jitters.
func (d *delay) restart(transit, now int64) {
	d.known, d.base, d.window, d.since = true, transit, [2]int64{transit, transit}, now
}

// add takes one packet's transit time and returns by how much it was later than the quickest.
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

// target is the delay to play at: what nearly all packets make, and the 20 ms
// that are taken at a time. 40 to 230 ms.
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
