package rtp

import (
	"testing"
	"time"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/mediatest"
)

// TestJitterBuffer_SourceChanges proves that audio goes on if the source or its numbers change behind one address. Carriers do that when
// they connect their caller with another machine.
// https://github.com/livekit/sip/pull/828 (a new SSRC with lower numbers)
// https://github.com/baresip/baresip/issues/817 (the same)
// https://github.com/signalwire/freeswitch/issues/2361 (a timestamp that goes back under one SSRC)
func TestJitterBuffer_SourceChanges(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]Header{
		"new source, lower numbers":   {SSRC: 2, Seq: 12676, TS: 500},
		"new source, higher numbers":  {SSRC: 2, Seq: 40000, TS: 0xF0000000},
		"new source, 0.2 s behind":    {SSRC: 2, Seq: 12676, TS: 13440 + 40*160},
		"timestamp back, marker":      {SSRC: 1, Seq: 21344, TS: 3200, Marker: true},
		"timestamp back, no marker":   {SSRC: 1, Seq: 21344, TS: 3200},
		"timestamp ahead, no marker":  {SSRC: 1, Seq: 21344, TS: 0x7FFF0000},
		"numbers back, same timeline": {SSRC: 1, Seq: 100, TS: 13440 + 50*160},
	} {
		e := codec.NewEncoder(codec.PCMU)
		pcm := toneFor(codec.PCMU, 4*time.Second)
		p, dst, now := NewJitterBuffer(16000), make([]int16, 320), int64(1e9)
		var out []int16
		first := Header{SSRC: 1, Seq: 21294, TS: 13440}
		for i := range 200 {
			h, n := first, i
			if i >= 50 {
				h, n = second, i-50
			}
			h.Marker = h.Marker && n == 0
			h.Seq += uint16(n)
			h.TS += uint32(160 * n)
			p.Ring.Push(h, Kind(codec.PCMU), e.Encode(nil, pcm[i*160:(i+1)*160]), now)
			if p.Pull(dst, now+7e6) && i >= 75 {
				out = append(out, dst...)
			}
			now += FrameTime
		}
		if s := mediatest.Steady(out, 400); s < 0.95 || p.late > 5 || p.late > 0 && second.SSRC != first.SSRC {
			t.Errorf("%s: %.2f clean half a second later, %d late", name, s, p.late)
		}
	}
}
