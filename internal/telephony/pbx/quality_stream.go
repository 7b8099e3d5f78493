package pbx

import (
	"context"
	"hash/maphash"
	"time"

	"soniq/internal/platform/event"
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
	tick := time.NewTicker(qualityEvery / qualitySlots)
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
	if s.Streams == nil {
		return
	}
	orgs := s.Streams.Subscribers(event.CallQuality{}.Kind())
	if len(orgs) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, c := range s.calls {
		if orgs[c.orgNow()] && maphash.String(slotSeed, id)%qualitySlots == turn {
			c.inbox.push(message{run: func(context.Context) { c.publishQuality() }})
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
		e := event.CallQuality{CallID: c.id, LegID: l.id, MOS: rounded(x.MOS), LossRate: rounded(x.LossRate), JitterMS: ms(x.Jitter), RTTMS: ms(rtt), At: at(x.At)}
		if err := c.sw.Streams.PublishEphemeral(c.new.Org, e); err != nil {
			c.sw.Log.Warn("quality of a call not published", "org", c.new.Org, "call", c.id, "err", err)
		}
	}
}
