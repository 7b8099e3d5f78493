package transcript

import "math"

// Voice activity detection: limits. A frame is 20 ms.
const (
	framesPerSecond = 50
	hangFrames      = 20   // 0.4 s of silence end a segment
	padFrames       = 7    // about 0.15 s are kept on both sides
	minSpeechFrames = 4    // shorter bursts are clicks
	maxFrames       = 1000 // a segment is cut after about 20 s

	marginDB      = 8  // speech is this far above the noise floor
	rangeDB       = 32 // and within this of the loudest speech so far
	lowestDB      = 30 // quieter than this is never speech
	noiseDB       = 50 // louder than this is never noise: continuous speech
	maxDB         = 96
	decayPerFrame = 0.9985 // factor of a frame's weight after each further frame: half is forgotten in about 9 s
)

// frameSpan is a range of frames, end excluded.
type frameSpan struct{ from, to int64 }

// speechDetector finds speech in the frame energies of one channel. It follows the noise floor and the level of
// speech with a decaying histogram of levels, so it needs no look-ahead and keeps no audio.
type speechDetector struct {
	levels       levelHistogram
	n            int64 // frames seen
	segmentStart int64 // first frame of the current segment, -1 if there is none
	lastLoud     int64 // last loud frame of it
	lastEnd      int64 // end of the last returned segment
	recent       []float64
}

func newSpeechDetector() *speechDetector {
	return &speechDetector{segmentStart: -1, levels: newLevelHistogram()}
}

// frame takes the level of the next 20 ms and returns the segment that ends with it, if any.
func (d *speechDetector) frame(db float64) (frameSpan, bool) {
	i := d.n
	d.n++
	d.levels.add(db)
	loud := db > d.levels.threshold()
	switch {
	case loud && d.segmentStart < 0:
		d.segmentStart, d.lastLoud, d.recent = i, i, d.recent[:0]
	case loud:
		d.lastLoud = i
	}
	if d.segmentStart < 0 {
		return frameSpan{}, false
	}
	d.recent = append(d.recent, db)
	if i-d.lastLoud > hangFrames {
		return d.close(d.lastLoud+1, -1)
	}
	if len(d.recent) >= maxFrames {
		cut := d.quietest()
		return d.close(cut, cut)
	}
	return frameSpan{}, false
}

// flush ends the stream and returns the open segment, if any.
func (d *speechDetector) flush() (frameSpan, bool) {
	if d.segmentStart < 0 {
		return frameSpan{}, false
	}
	return d.close(d.lastLoud+1, -1)
}

// firstNeeded returns the first frame whose audio may still be needed.
func (d *speechDetector) firstNeeded() int64 {
	from := d.n - padFrames
	if d.segmentStart >= 0 {
		from = d.segmentStart - padFrames
	}
	return max(from, d.lastEnd, 0)
}

// close returns the current segment up to frame end, with padding. The next one starts at next; if next is negative
// there is none yet.
func (d *speechDetector) close(end, next int64) (frameSpan, bool) {
	s := frameSpan{max(d.segmentStart-padFrames, d.lastEnd, 0), min(end+padFrames, d.n)}
	short := end-d.segmentStart < minSpeechFrames
	if next >= 0 {
		s.to = end
		d.recent = append(d.recent[:0], d.recent[end-d.segmentStart:]...)
	}
	d.segmentStart = next
	if short {
		return frameSpan{}, false
	}
	d.lastEnd = s.to
	return s, true
}

// quietest returns where to split a segment that is too long: the quietest tenth of a second of its second half.
func (d *speechDetector) quietest() int64 {
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
	return d.segmentStart + int64(at)
}

// levelHistogram is a decaying histogram of frame levels, one bin per dB.
type levelHistogram struct {
	bins   [maxDB + 1]float64
	total  float64
	weight float64 // of the next frame; grows, so that older frames lose weight
	limit  float64
	age    int
}

// newLevelHistogram starts with a little silence, so that speech in the very first frame is detected.
func newLevelHistogram() levelHistogram {
	l := levelHistogram{weight: 1, limit: lowestDB}
	l.bins[0], l.total = 5, 5
	return l
}

// add counts a frame. The threshold is recomputed every fifth frame.
func (l *levelHistogram) add(db float64) {
	bin := min(max(int(db), 0), maxDB)
	l.weight /= decayPerFrame
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
func (l *levelHistogram) threshold() float64 { return l.limit }

// percentile returns the level below which a share of the frames lies.
func (l *levelHistogram) percentile(share float64) float64 {
	left := share * l.total
	for i, w := range l.bins {
		if left -= w; left <= 0 {
			return float64(i)
		}
	}
	return maxDB
}

func (l *levelHistogram) scale(by float64) {
	for i := range l.bins {
		l.bins[i] *= by
	}
	l.total *= by
	l.weight *= by
}
