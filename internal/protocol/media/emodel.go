package media

import (
	"math"
	"time"

	"soniq/internal/protocol/media/codec"
)

// An emodelInput holds the impairments that the E-model rates.
type emodelInput struct {
	codec       codec.Codec
	loss        float64 // share of lost packets, 0 to 1
	burst       float64 // burst ratio: mean loss run relative to random loss, 1 or more
	jitter, rtt time.Duration
}

// emodelR0 is the rating factor of a call without impairments (G.107 §7.7, all parameters at their defaults).
const emodelR0 = 93.2

// lossRobustness is the packet loss robustness factor Bpl of G.107 §7.5, with concealment. The value of G.711 is
// from G.113 appendix I. G.113 has no values for the other codecs with today's concealment; theirs are estimates.
var lossRobustness = [codec.Count]float64{codec.PCMU: 25.1, codec.PCMA: 25.1, codec.G722: 20, codec.Opus: 30}

// mos returns the estimated mean opinion score, 1 to 4.5, by the E-model (ITU-T G.107) reduced to delay and loss.
// Wide-band codecs are rated on the narrow-band scale, so that calls can be compared. The gain of wide-band audio is
// left out.
func (r emodelInput) mos() float64 {
	delay := float64(r.delay().Milliseconds())
	late := 0.024 * delay
	if delay > 177.3 {
		late += 0.11 * (delay - 177.3)
	}
	p := 100 * r.loss
	lost := 95 * p / (p/max(1, r.burst) + lossRobustness[r.codec&3])
	return mosOf(emodelR0 - late - lost)
}

// delay returns the mouth-to-ear delay: half the round trip, one packet, and a jitter buffer of the usual two
// deviations.
func (r emodelInput) delay() time.Duration { return r.rtt/2 + packetTime + 2*r.jitter }

// mosOf returns the score of a rating factor (G.107 annex B), rounded to hundredths.
func mosOf(r float64) float64 {
	switch {
	case r <= 0:
		return 1
	case r >= 100:
		return 4.5
	}
	score := 1 + 0.035*r + r*(r-60)*(100-r)*7e-6
	return math.Round(100*max(1, score)) / 100
}
