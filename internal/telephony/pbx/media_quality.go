package pbx

import (
	"context"
	"encoding/json"
	"hash/maphash"
	"math"
	"time"

	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/protocol/media"
	"soniq/internal/telephony/call"
)

// Streams publishes to the event streams of this node. *event.Outbox implements it.
type Streams interface {
	// Subscribers returns the organisations with a stream that includes the kind.
	Subscribers(k event.Kind) map[string]bool
	PublishEphemeral(org string, p event.StreamPayload) error
}

// Interval of the published quality, which equals the measurement interval, and the number of slots that spread the
// calls over it.
const (
	qualityEvery = 5 * time.Second
	qualitySlots = 10
)

// PublishQuality publishes call.quality every five seconds for the connected calls of organisations with a
// subscriber, until ctx ends. It uses one ticker for all calls. Without subscribers a tick costs one lookup.
func (s *Switch) PublishQuality(ctx context.Context) {
	tick := clock.NewTicker(qualityEvery / qualitySlots)
	defer tick.Stop()
	for turn := uint64(0); ; turn++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.publishQuality(turn % qualitySlots)
		}
	}
}

// publishQuality asks the calls of one slot to publish.
func (s *Switch) publishQuality(turn uint64) {
	if s.cfg.Streams == nil {
		return
	}
	orgs := s.cfg.Streams.Subscribers(event.CallQuality{}.Kind())
	if len(orgs) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, c := range s.calls {
		if orgs[c.orgNow()] && maphash.String(slotSeed, id)%qualitySlots == turn {
			c.inbox.Push(message{run: func(context.Context) { c.publishQuality() }})
		}
	}
}

var slotSeed = maphash.MakeSeed()

// publishQuality publishes the latest measurement of each leg of a connected call, once per measurement.
func (c *liveCall) publishQuality() {
	if c.answered.IsZero() {
		return
	}
	for _, l := range c.parties() {
		x, rtt, ok := l.stream.LatestSample()
		if !ok || x.At.Equal(l.qualityAt) {
			continue
		}
		l.qualityAt = x.At
		e := event.CallQuality{CallID: c.id, LegID: l.id, MOS: rounded(x.MOS), LossRate: rounded(x.LossRate), JitterMS: ms(x.Jitter),
			RTTMS: ms(rtt), At: at(x.At)}
		if err := c.sw.cfg.Streams.PublishEphemeral(c.new.Org, e); err != nil {
			c.sw.cfg.Log.Warn("quality of a call not published", "org", c.new.Org, "call", c.id, "err", err)
		}
	}
}

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
		OneWayAudio: q.OneWay, PostDialDelayMS: span(l.started, l.rang), FirstAudioMS: span(l.answered, q.FirstAudio),
		Samples: []call.Sample{}}
	for _, s := range h.Samples {
		x.Samples = append(x.Samples, call.Sample{At: db.At(s.At), MOS: rounded(s.MOS), LossRate: rounded(s.LossRate),
			JitterMS: ms(s.Jitter)})
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
