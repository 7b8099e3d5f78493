package media

import (
	"math"
	"time"
)

const (
	sampleTime = int64(5 * time.Second)
	maxSamples = 720 // one hour; longer calls have fewer samples per hour
)

// A qualityMeter accumulates the quality of one direction of a leg, one window at a time.
type qualityMeter struct {
	samples []qualitySample
	latest  qualitySample // of the last window, even if it was not kept
	stride  int           // windows per kept sample
	skipped int

	windows           int
	mosSum, jitterSum float64
	mosMin            float64
	jitterMax         time.Duration
	rttSum            time.Duration
	rtts              int
	weight            float64
}

// A qualitySample is one measurement in compact form, because there are many.
type qualitySample struct {
	at     int64
	jitter uint32 // µs
	loss   uint16 // 1/100 percent
	mos    uint16 // 1/100
}

// add records the figures of a window. weight is the number of packets in the window.
func (m *qualityMeter) add(at int64, r emodelInput, weight float64) {
	mos := r.mos()
	m.windows++
	m.mosSum += mos * weight
	m.weight += weight
	m.jitterSum += float64(r.jitter) * weight
	m.jitterMax = max(m.jitterMax, r.jitter)
	if m.mosMin == 0 || mos < m.mosMin {
		m.mosMin = mos
	}
	m.latest = qualitySample{at, uint32(min(r.jitter.Microseconds(), math.MaxUint32)), uint16(math.Round(10000 * r.loss)),
		uint16(math.Round(100 * mos))}
	if m.skipped++; m.skipped < m.stride {
		return
	}
	m.skipped = 0
	if len(m.samples) == maxSamples {
		m.halve()
	}
	m.samples = append(m.samples, m.latest)
}

// halve drops every second sample to make room, and keeps half as many from now on.
func (m *qualityMeter) halve() {
	for i := range maxSamples / 2 {
		m.samples[i] = m.samples[2*i+1]
	}
	m.samples = m.samples[:maxSamples/2]
	m.stride = 2 * max(1, m.stride)
}

func (m *qualityMeter) addRoundTrip(rtt time.Duration) {
	m.rttSum += rtt
	m.rtts++
}

// rtt returns the average round-trip time so far, 0 if unknown.
func (m *qualityMeter) rtt() time.Duration {
	if m.rtts == 0 {
		return 0
	}
	return m.rttSum / time.Duration(m.rtts)
}
