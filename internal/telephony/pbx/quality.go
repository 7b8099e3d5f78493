package pbx

import (
	"encoding/json"
	"math"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/protocol/media"
	"soniq/internal/telephony/call"
)

// qualityJSON returns the leg's quality as stored in its row; nil if nothing was measured.
func (l *leg) qualityJSON() json.RawMessage {
	if l.quality == nil {
		return nil
	}
	q := *l.quality
	x := call.LegQuality{Received: l.directionQuality(q, q.Received), Sent: l.directionQuality(q, q.Sent)}
	if x.Received == nil && x.Sent == nil {
		return nil
	}
	b, err := json.Marshal(x)
	if err != nil {
		return nil
	}
	return b
}

// directionQuality returns one direction of a leg; nil without packets.
func (l *leg) directionQuality(q media.Quality, h media.DirectionQuality) *call.Quality {
	if h.Packets == 0 {
		return nil
	}
	x := &call.Quality{MOSMin: rounded(h.MOSMin), MOSAverage: rounded(h.MOS), Packets: int64(h.Packets), Lost: h.Lost,
		LossRate: rounded(h.LossRate), BurstLossMax: h.BurstLossMax, JitterMSAverage: ms(h.JitterAvg), JitterMSMax: ms(h.JitterMax),
		RTTMS: ms(q.RTT), Codec: h.Codec.String(), Transport: "udp", SRTP: q.Secure, SilenceSeconds: int(q.Silence / time.Second),
		OneWayAudio: q.OneWay, PostDialDelayMS: span(l.started, l.rang), FirstAudioMS: span(l.answered, q.FirstAudio), Samples: []call.Sample{}}
	for _, s := range h.Samples {
		x.Samples = append(x.Samples, call.Sample{At: db.At(s.At), MOS: rounded(s.MOS), LossRate: rounded(s.LossRate), JitterMS: ms(s.Jitter)})
	}
	return x
}

func rounded(f float64) float64 { return math.Round(f*100) / 100 }

func ms(d time.Duration) float64 { return rounded(float64(d) / float64(time.Millisecond)) }

// span returns the milliseconds between two times; 0 if one is zero or they are in reverse order.
func span(from, to time.Time) int {
	if from.IsZero() || to.Before(from) {
		return 0
	}
	return int(to.Sub(from) / time.Millisecond)
}
