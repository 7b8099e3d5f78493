package pbx

import (
	"context"
	"hash/maphash"
	"time"

	"soniq/internal/platform/event"
)

// Streams are the live streams of this node; *event.Outbox fills it.
type Streams interface {
	// Followers are the organisations of which a stream shows the kind.
	Followers(k event.Kind) map[string]bool
	Tell(org string, p event.Live) error
}

// How often how a leg sounds is told, which is how often it is measured, and in how many turns: not all calls are told of at once.
const (
	qualityEvery = 5 * time.Second
	qualityTurns = 10
)

// TellQuality tells the live streams how the legs of calls sound, until ctx ends: of organisations that are followed, every five seconds.
// One ticker does it for all calls, and where nobody follows it asks for nothing but that.
func (s *Switch) TellQuality(ctx context.Context) {
	tick := time.NewTicker(qualityEvery / qualityTurns)
	defer tick.Stop()
	for turn := uint64(0); ; turn++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.tellQuality(turn % qualityTurns)
		}
	}
}

// tellQuality has the calls tell whose turn it is.
func (s *Switch) tellQuality(turn uint64) {
	if s.Streams == nil {
		return
	}
	orgs := s.Streams.Followers(event.CallQuality{}.Kind())
	if len(orgs) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, c := range s.calls {
		if orgs[c.orgNow()] && maphash.String(turnSeed, id)%qualityTurns == turn {
			c.inbox.push(message{run: func(context.Context) { c.tellQuality() }})
		}
	}
}

var turnSeed = maphash.MakeSeed()

// tellQuality tells how each leg of a connected call was last heard, once per measurement.
func (c *liveCall) tellQuality() {
	if c.answered.IsZero() {
		return
	}
	for _, l := range c.parties() {
		x, rtt, ok := l.stream.Latest()
		if !ok || x.At.Equal(l.soundsAt) {
			continue
		}
		l.soundsAt = x.At
		e := event.CallQuality{CallID: c.id, LegID: l.id, MOS: rounded(x.MOS), LossRate: rounded(x.LossRate), JitterMS: ms(x.Jitter), RTTMS: ms(rtt), At: at(x.At)}
		if err := c.sw.Streams.Tell(c.new.Org, e); err != nil {
			c.sw.Log.Warn("quality of a call not told", "org", c.new.Org, "call", c.id, "err", err)
		}
	}
}
