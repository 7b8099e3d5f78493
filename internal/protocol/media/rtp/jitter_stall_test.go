package rtp

import (
	"math/rand/v2"
	"testing"
	"time"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/dsp"
	"soniq/internal/protocol/media/mediatest"
)

// stalls returns the jitter of a network that passes nothing for a time every eight seconds, then everything at once.
func stalls(d time.Duration) func(n int) int64 {
	frames := int(int64(d) / FrameTime)
	return func(n int) int64 {
		if n %= 400; n >= 200 && n < 200+frames {
			return int64(200+frames-n) * FrameTime
		}
		return 0
	}
}

// quietTime returns how much of the audio at 16 kHz is silent, in steps of 10 ms.
func quietTime(pcm []int16) (d time.Duration) {
	for ; len(pcm) >= 160; pcm = pcm[160:] {
		if dsp.IsSilent(pcm[:160]) {
			d += 10 * time.Millisecond
		}
	}
	return d
}

// TestJitterBuffer_StallLosesNothing stalls the network three times. No packet is lost, and the gaps in the audio are not
// longer than the stalls.
// https://github.com/Eyevinn/strom/pull/815 and https://github.com/UOAF/OpenFreq/pull/42
func TestJitterBuffer_StallLosesNothing(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{60 * time.Millisecond, 100 * time.Millisecond, 150 * time.Millisecond, 200 * time.Millisecond} {
		out, p := network{codec: codec.PCMU, pcm: toneFor(codec.PCMU, 24*time.Second), jitter: stalls(d)}.run(t)
		quiet := quietTime(out[16000:])
		t.Logf("%s: %d late, %d lost, quiet for %s, clean %.3f", d, p.late, p.lost, quiet, mediatest.Steady(out, 400))
		if p.late+p.lost > 0 || quiet > 3*d {
			t.Errorf("stalls of %s: %d packets late, %d lost, quiet for %s", d, p.late, p.lost, quiet)
		}
	}
}

// delayNow returns the playout delay beyond the fastest packets.
func (p *JitterBuffer) delayNow(now int64) time.Duration {
	return time.Duration(p.excessDelay(now)+p.delay.target()) * time.Second / time.Duration(p.rate)
}

// TestJitterBuffer_DelayReturnsAfterStalls stalls the network, after which it is perfect. The delay is short again ten
// seconds later.
// https://github.com/bigbluebutton/bigbluebutton/issues/15172 and https://github.com/meetecho/janus-gateway/pull/3353
func TestJitterBuffer_DelayReturnsAfterStalls(t *testing.T) {
	t.Parallel()
	stalled := stalls(200 * time.Millisecond)
	_, p := network{codec: codec.PCMU, pcm: toneFor(codec.PCMU, 16*time.Second), jitter: func(n int) int64 {
		if n > 300 {
			return 0
		}
		return stalled(n)
	}}.run(t)
	if d := p.delayNow(p.lastArrival + 7e6); d > 70*time.Millisecond {
		t.Errorf("audio is played %s after it could be", d)
	}
}

// TestJitterBuffer_PacketTimeChanges sends packets of 40, 20, 60 and 10 ms, each for two seconds.
// https://github.com/signalwire/freeswitch/issues/3150 and https://github.com/pjsip/pjproject/issues/2215
func TestJitterBuffer_PacketTimeChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []codec.Codec{codec.PCMU, codec.G722} {
		e, p := codec.NewEncoder(c), NewJitterBuffer(16000)
		pcm := toneFor(c, 8*time.Second)
		ms, clock := e.Rate()/1000, c.Clock()/1000
		var out []int16
		dst, now, at := make([]int16, 320), int64(1e9), 0
		for seq := uint16(0); len(pcm) > 0; seq++ {
			n := []int{40, 20, 60, 10}[min(at/2000, 3)]
			n = min(n, len(pcm)/ms)
			p.Ring.Push(Header{Seq: seq, TS: uint32(at * clock), SSRC: 1}, Kind(c), e.Encode(nil, pcm[:n*ms]), now+int64(at+n)*1e6)
			pcm, at = pcm[n*ms:], at+n
			for len(out) < (at-10)*16 && p.Pull(dst, now+int64(len(out)/16+25)*1e6) {
				out = append(out, dst...)
			}
		}
		if s := mediatest.Steady(out, 400); s < 0.99 || p.late+p.lost > 0 || len(out) < 7*16000 {
			t.Errorf("%v: %.3f clean of %d samples, %d late, %d lost", c, s, len(out), p.late, p.lost)
		}
	}
}

// TestJitterBuffer_UnevenTimestamps sends packets of 20 ms with timestamps that are up to 0.2 ms off.
// https://github.com/awslabs/amazon-kinesis-video-streams-webrtc-sdk-c/issues/1607
func TestJitterBuffer_UnevenTimestamps(t *testing.T) {
	t.Parallel()
	e, p, r := codec.NewEncoder(codec.Opus), NewJitterBuffer(16000), rand.New(rand.NewPCG(1, 2))
	pcm := toneFor(codec.Opus, 8*time.Second)
	var out []int16
	dst, n := make([]int16, 320), e.Rate()/50
	for i := 0; (i+1)*n <= len(pcm); i++ {
		now := int64(1e9) + int64(i)*FrameTime
		ts := i*960 + r.IntN(20) - 10
		p.Ring.Push(Header{Seq: uint16(i), TS: uint32(ts), SSRC: 1}, Kind(codec.Opus), e.Encode(nil, pcm[i*n:(i+1)*n]), now)
		if p.Pull(dst, now+7e6) {
			out = append(out, dst...)
		}
	}
	if s := mediatest.Steady(out, 400); s < 0.99 || p.late+p.lost > 0 {
		t.Errorf("%.3f clean, %d late, %d lost", s, p.late, p.lost)
	}
}
