package transcript

import (
	"math/rand/v2"
	"testing"
)

// detectSpans detects speech in frame levels: pairs of seconds and dB, with a little noise added.
func detectSpans(pairs ...float64) []frameSpan {
	r := rand.New(rand.NewPCG(1, 1))
	d := newSpeechDetector()
	var out []frameSpan
	for i := 0; i < len(pairs); i += 2 {
		for range int(pairs[i] * framesPerSecond) {
			if s, ok := d.frame(pairs[i+1] + 2*r.Float64()); ok {
				out = append(out, s)
			}
		}
	}
	if s, ok := d.flush(); ok {
		out = append(out, s)
	}
	return out
}

func TestSpeechDetector_SegmentsBetweenPauses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		levels []float64
		want   []frameSpan
	}{
		{"silence", []float64{10, 0}, nil},
		{"line noise", []float64{10, 25}, nil},
		{"one word from the first frame", []float64{1, 65, 2, 0}, []frameSpan{{0, 57}}},
		{"two phrases", []float64{1, 10, 2, 65, 1, 10, 1, 65, 1, 10}, []frameSpan{{43, 157}, {193, 257}}},
		{"a pause within a phrase", []float64{1, 10, 1, 65, 0.3, 10, 1, 65, 1, 10}, []frameSpan{{43, 172}}},
		{"a click", []float64{1, 10, 0.04, 80, 2, 10}, nil},
		{"hang-up while speaking", []float64{1, 10, 1, 65}, []frameSpan{{43, 100}}},
		{"speech above loud noise", []float64{6, 44, 1, 66, 2, 44}, []frameSpan{{293, 357}}},
	} {
		got := detectSpans(c.levels...)
		if c.name == "speech above loud noise" && len(got) > 1 { // the noise counts as speech until its level is known
			got = got[len(got)-1:]
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: found %v, want %v", c.name, got, c.want)
			continue
		}
		for i, s := range got {
			if s != c.want[i] {
				t.Errorf("%s: segment %d is %v, want %v", c.name, i, s, c.want[i])
			}
		}
	}
}

func TestSpeechDetector_LongSpeechSplitAtQuietestPlace(t *testing.T) {
	t.Parallel()
	got := detectSpans(1, 10, 14, 65, 0.2, 50, 12, 65, 1, 10)
	if len(got) != 2 {
		t.Fatalf("found %v, want two parts", got)
	}
	if cut := got[0].to; cut < 750 || cut > 762 || got[1].from != cut {
		t.Errorf("cut at %d and continued at %d, want both in the quiet place at 750-760", cut, got[1].from)
	}
	for _, s := range detectSpans(1, 10, 90, 65, 1, 10) {
		if s.to-s.from > maxFrames+padFrames {
			t.Errorf("segment %v is longer than 20 s", s)
		}
	}
}

func TestSpeechDetector_SegmentsDoNotOverlap(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 3))
	var levels []float64
	for range 200 {
		levels = append(levels, r.Float64()*2, []float64{5, 30, 50, 65, 75}[r.IntN(5)])
	}
	last := int64(0)
	for _, s := range detectSpans(levels...) {
		if s.from < last || s.to <= s.from {
			t.Errorf("segment %v begins before the one before it ends at %d", s, last)
		}
		last = s.to
	}
}
