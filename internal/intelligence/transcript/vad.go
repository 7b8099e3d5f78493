package transcript

import "math"

// Voice activity detection: limits. A frame is 20 ms.
const (
	framesPerSecond = 50
	hangFrames      = 20   // 0.4 s of silence end a segment
	padFrames       = 7    // about 0.15 s are kept on both sides
	minSpeechFrames = 4    // shorter bursts are clicks
	maxFrames       = 1000 // a segment is cut after about 20 s

	marginDB  = 8  // speech is this far above the noise floor
	rangeDB   = 32 // and within this of the loudest speech so far
	lowestDB  = 30 // quieter than this is never speech
	noiseDB   = 50 // louder than this is never noise: continuous speech
	maxDB     = 96
	forgetPer = 0.9985 // factor of a frame's weight after each further frame: half is forgotten in about 9 s
)

// frameSpan is a range of frames, end excluded.
type span struct{ from, to int64 }

// speechDetector finds speech in the frame energies of one channel. It follows the noise floor and the level of
// speech with a decaying histogram of levels, so it needs no look-ahead and keeps no audio.
type detector struct {
	levels levels
	n      int64 // frames seen
	on     int64 // first frame of the current segment, -1 if there is none
	last   int64 // last loud frame of it
	ended  int64 // end of the last returned segment
	recent []float64
}

func newDetector() *detector { return &detector{on: -1, levels: newLevels()} }

// frame takes the level of the next 20 ms and returns the segment that ends with it, if any.
func (d *detector) frame(db float64) (span, bool) {
	i := d.n
	d.n++
	d.levels.add(db)
	loud := db > d.levels.threshold()
	switch {
	case loud && d.on < 0:
		d.on, d.last, d.recent = i, i, d.recent[:0]
	case loud:
		d.last = i
	}
	if d.on < 0 {
		return span{}, false
	}
	d.recent = append(d.recent, db)
	if i-d.last > hangFrames {
		return d.close(d.last+1, -1)
	}
	if len(d.recent) >= maxFrames {
		cut := d.quietest()
		return d.close(cut, cut)
	}
	return span{}, false
}

// flush ends the stream and returns the open segment, if any.
func (d *detector) flush() (span, bool) {
	if d.on < 0 {
		return span{}, false
	}
	return d.close(d.last+1, -1)
}

// firstNeeded returns the first frame whose audio may still be needed.
func (d *detector) waiting() int64 {
	from := d.n - padFrames
	if d.on >= 0 {
		from = d.on - padFrames
	}
	return max(from, d.ended, 0)
}

// close returns the current segment up to frame end, with padding. The next one starts at next; if next is negative
// there is none yet.
func (d *detector) close(end, next int64) (span, bool) {
	s := span{max(d.on-padFrames, d.ended, 0), min(end+padFrames, d.n)}
	short := end-d.on < minSpeechFrames
	if next >= 0 {
		s.to = end
		d.recent = append(d.recent[:0], d.recent[end-d.on:]...)
	}
	d.on = next
	if short {
		return span{}, false
	}
	d.ended = s.to
	return s, true
}

// quietest returns where to split a segment that is too long: the quietest tenth of a second of its second half.
func (d *detector) quietest() int64 {
	best, at := math.Inf(1), len(d.recent)-1
	for i := len(d.recent) / 2; i+5 <= len(d.recent); i++ {
		sum := 0.0
		for _, v := range d.recent[i : i+5] {
			sum += v
		}
		if sum < best {
			best, at = sum, i+2
		}
	}
	return d.on + int64(at)
}

// levelHistogram is a decaying histogram of frame levels, one bin per dB.
type levels struct {
	bins   [maxDB + 1]float64
	total  float64
	weight float64 // of the next frame; grows, so that older frames lose weight
	limit  float64
	age    int
}

// newLevelHistogram starts with a little silence, so that speech in the very first frame is detected.
func newLevels() levels {
	l := levels{weight: 1, limit: lowestDB}
	l.bins[0], l.total = 5, 5
	return l
}

// add counts a frame. The threshold is recomputed every fifth frame.
func (l *levels) add(db float64) {
	bin := min(max(int(db), 0), maxDB)
	l.weight /= forgetPer
	l.bins[bin] += l.weight
	l.total += l.weight
	if l.age++; l.age%5 == 1 {
		l.limit = max(min(l.percentile(0.10), noiseDB)+marginDB, l.percentile(0.98)-rangeDB, lowestDB)
	}
	if l.weight > 1e6 {
		l.scale(1e-6)
	}
}

// threshold returns the level above which a frame is speech.
func (l *levels) threshold() float64 { return l.limit }

// percentile returns the level below which a share of the frames lies.
func (l *levels) percentile(share float64) float64 {
	left := share * l.total
	for i, w := range l.bins {
		if left -= w; left <= 0 {
			return float64(i)
		}
	}
	return maxDB
}

func (l *levels) scale(by float64) {
	for i := range l.bins {
		l.bins[i] *= by
	}
	l.total *= by
	l.weight *= by
}
