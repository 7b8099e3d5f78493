// Package mediatest has audio, SDP bodies and STUN messages for tests of the media packages.
package mediatest

import (
	"encoding/binary"
	"math"
)

// Babble returns deterministic audio with the level changes of speech: three gliding voices, a hiss, pauses, and some
// clipping. 8000 samples at 16 kHz.
func Babble() []int16 {
	pcm, noise := make([]int16, 8000), uint32(1)
	var phase [3]uint32
	for i := range pcm {
		v := int32(0)
		for k := range phase {
			phase[k] += uint32(60000+40000*k+i*(k+2)) * 64 // a triangle
			v += (int32(phase[k]>>16)&0x7FFF - 0x4000) * int32(1+k) / 2
		}
		noise = noise*1664525 + 1013904223
		v += int32(noise>>18) - 8192
		if i/1000%4 == 3 {
			v = int32(noise >> 28)
		}
		pcm[i] = int16(max(-32768, min(32767, v)))
	}
	return pcm
}

// PCMBytes returns samples as 16-bit little-endian bytes.
func PCMBytes(pcm []int16) []byte {
	var b []byte
	for _, v := range pcm {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	return b
}

// InFrames passes pcm to f in pieces of n samples.
func InFrames(pcm []int16, n int, f func(dst, src []int16) []int16) (out []int16) {
	for ; len(pcm) >= n; pcm = pcm[n:] {
		out = f(out, pcm[:n])
	}
	return out
}

// NearHz reports whether a frequency is within 5 Hz of another.
func NearHz(got, want float64) bool { return math.Abs(got-want) < 5 }

// Steady returns the share of 40 ms pieces after the first second in which a tone is clean.
func Steady(pcm []int16, hz float64) float64 {
	good, all := 0, 0
	for i := 16000; i+640 <= len(pcm); i += 640 {
		all++
		if Pure(pcm[i:i+640], hz, 16000) > 0.9 {
			good++
		}
	}
	return float64(good) / float64(max(all, 1))
}

// Pure returns the share of the energy at hz. Below -20 dBFS it returns 0.
func Pure(pcm []int16, hz float64, rate int) float64 {
	var re, im, sum float64
	for i, v := range pcm {
		s, c := math.Sincos(2 * math.Pi * hz * float64(i) / float64(rate))
		re, im, sum = re+float64(v)*c, im+float64(v)*s, sum+float64(v)*float64(v)
	}
	if n := float64(len(pcm)); sum/n > 0.5*3277*3277 {
		return 2 * (re*re + im*im) / (n * sum)
	}
	return 0
}
