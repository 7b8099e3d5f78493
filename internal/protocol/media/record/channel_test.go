package record

import (
	"math/rand/v2"
	"testing"

	"soniq/internal/protocol/media/rtp"
	"soniq/internal/protocol/media/wav"
)

// channelFeed passes packets of 20 ms to a recording channel and collects their positions, in samples.
type channelFeed struct {
	l   recordingChannel
	seq uint16
	out []int64
}

func newChannelFeed() *channelFeed {
	return &channelFeed{l: newRecordingChannel(layout{wav.ULaw, 8000, false})}
}

// at passes one packet with its timestamp and its arrival in ms.
func (f *channelFeed) at(ts uint32, arrivalMS float64, ssrc uint32, marker bool) int64 {
	f.seq++
	p := f.l.locate(rtp.Frame{Header: rtp.Header{Seq: f.seq, TS: ts, SSRC: ssrc, Marker: marker}, Now: int64(arrivalMS * 1e6)},
		int64(arrivalMS*8))
	f.out = append(f.out, p)
	return p
}

func TestRecordingChannel_JitterDoesNotMoveAudio(t *testing.T) {
	t.Parallel()
	f, rng := newChannelFeed(), rand.New(rand.NewPCG(1, 2))
	for i := range 1000 {
		f.at(uint32(160*i), float64(20*i)+40*rng.Float64(), 1, false)
	}
	steps := 0
	for i := 1; i < len(f.out); i++ {
		if f.out[i]-f.out[i-1] != 160 {
			steps++
		}
	}
	if off := f.out[999] - 160*999; steps > 2 || off < -160 || off > 160 {
		t.Errorf("%d corrections, %d samples off at the end", steps, off)
	}
}

func TestRecordingChannel_LateFirstPacketCorrected(t *testing.T) {
	t.Parallel()
	f := newChannelFeed()
	f.at(0, 150, 1, true)
	for i := 1; i < 10; i++ {
		if got, want := f.at(uint32(160*i), float64(20*i), 1, false), int64(160*i); i*20 > 60 && (got > want+240 || got < want) {
			t.Errorf("packet %d at %d, want %d", i, got, want)
		}
	}
}

func TestRecordingChannel_ReorderedPackets(t *testing.T) {
	t.Parallel()
	f := newChannelFeed()
	f.at(0, 0, 1, false)
	f.at(480, 60, 1, false)
	if a, b := f.at(160, 61, 1, false), f.at(320, 62, 1, false); a != 160 || b != 320 {
		t.Errorf("got %d and %d", a, b)
	}
}

func TestRecordingChannel_SilenceSuppressionGapStays(t *testing.T) {
	t.Parallel()
	f := newChannelFeed()
	f.at(0, 0, 1, false)
	if got := f.at(8*10000, 10005, 1, true); got != 80000 {
		t.Errorf("after 10 s of silence: %d, want 80000", got)
	}
}

func TestRecordingChannel_TimestampJumpsFollowed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ts   uint32
		ssrc uint32
	}{"timestamp stood still in hold": {160, 1}, "timestamp jumped ahead": {1 << 30, 1}, "timestamp jumped back": {0x90000000, 1}, "new source": {77, 2}} {
		f := newChannelFeed()
		f.at(0, 0, 1, false)
		if got := f.at(c.ts, 5000, c.ssrc, false); got != 40000 {
			t.Errorf("%s: %d, want 40000", name, got)
		}
	}
}

func TestRecordingChannel_BurstAfterStallKeepsTime(t *testing.T) {
	t.Parallel()
	f := newChannelFeed()
	for i := range 200 {
		arrival := float64(20 * i)
		if i >= 100 && i < 140 { // 800 ms arrive at once
			arrival = 20 * 140
		}
		if got := f.at(uint32(160*i), arrival, 1, false); got != int64(160*i) {
			t.Fatalf("packet %d at %d, want %d", i, got, 160*i)
		}
	}
}

func TestRecordingChannel_ClockDriftFollowed(t *testing.T) {
	t.Parallel()
	f, worst := newChannelFeed(), int64(0)
	for i := range 50 * 600 { // ten minutes, 300 ppm fast
		arrival := float64(20*i) * (1 - 300e-6)
		worst = max(worst, f.at(uint32(160*i), arrival, 1, false)-int64(arrival*8))
	}
	if worst > 260 {
		t.Errorf("up to %d samples off", worst)
	}
	f, worst = newChannelFeed(), 0
	for i := range 50 * 600 { // slow
		arrival := float64(20*i) * (1 + 300e-6)
		worst = max(worst, int64(arrival*8)-f.at(uint32(160*i), arrival, 1, false))
	}
	if worst > 260 {
		t.Errorf("slow: up to %d samples off", worst)
	}
}

func TestRecordingChannel_TimestampWrap(t *testing.T) {
	t.Parallel()
	f := newChannelFeed()
	for i := range 100 {
		if got := f.at(0xFFFFFF00+uint32(160*i), float64(20*i), 1, false); got != int64(160*i) {
			t.Fatalf("packet %d at %d", i, got)
		}
	}
}
