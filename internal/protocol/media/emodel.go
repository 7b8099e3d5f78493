package media

import (
	"math"
	"time"
)

// A rating is what a listener's opinion depends on.
type rating struct {
	codec       Codec
	loss        float64 // share of packets, 0 to 1
	burst       float64 // how much longer losses last than those of chance would: 1 and more
	jitter, rtt time.Duration
}

// bestR is the rating factor of a call without impairments (G.107 §7.7, all
// parameters at their defaults).
const bestR = 93.2

// robust is how well a codec with concealment stands loss: Bpl of G.107 §7.5.
// That of G.711 is from G.113 appendix I; it gives none for the others with the
// concealment in use today, theirs are our estimate.
var robust = [codecs]float64{PCMU: 25.1, PCMA: 25.1, G722: 20, Opus: 30}

// mos estimates the mean opinion score, 1 to 4.5, by the E-model (ITU-T G.107)
// reduced to delay and loss. Wide-band codecs are rated on the narrow-band scale,
// so that figures of different calls compare: what their sound gains is left out.
func (r rating) mos() float64 {
	delay := float64(r.delay().Milliseconds())
	late := 0.024 * delay
	if delay > 177.3 {
		late += 0.11 * (delay - 177.3)
	}
	p := 100 * r.loss
	lost := 95 * p / (p/max(1, r.burst) + robust[r.codec&3])
	return opinion(bestR - late - lost)
}

// delay is the way from mouth to ear: half the round trip, a packet's time, and
// a jitter buffer of the usual two deviations.
func (r rating) delay() time.Duration { return r.rtt/2 + packetTime + 2*r.jitter }

// opinion is the score of a rating factor (G.107 annex B), rounded to hundredths.
func opinion(r float64) float64 {
	switch {
	case r <= 0:
		return 1
	case r >= 100:
		return 4.5
	}
	score := 1 + 0.035*r + r*(r-60)*(100-r)*7e-6
	return math.Round(100*max(1, score)) / 100
}
