package pbx

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
)

// detail holds the additional values of a timeline entry.
type detail map[string]any

// timeline collects the events and SIP messages of a call. The call's goroutine and the SIP server write it, API
// requests read it.
type story struct {
	mu       sync.Mutex // guards the rest
	steps    []call.Step
	messages []told
	ways     []way // distinct routes of the messages
	size     int   // total size of the messages in bytes
}

// tracedMessage is a SIP message of a leg.
type traced struct {
	at      time.Time
	sent    bool
	way     way
	message sip.Raw
}

// traceRoute is the transport and the addresses of a message.
type way struct {
	transport     sip.Transport
	local, remote netip.AddrPort
	leg           string
}

// traceEntry is a compact tracedMessage. A call has about a dozen messages on two routes.
type told struct {
	at      int64 // in nanoseconds since 1970
	way     uint16
	sent    bool
	message sip.Raw
}

// Size limits of a timeline. Later entries are dropped.
const (
	maxSteps    = 1000
	maxMessages = 400
	maxTraced   = 128 << 10 // bytes of all messages
)

// addEntry adds an entry to the timeline. Empty details are removed.
func (c *liveCall) step(kind string, l *leg, d detail) {
	for k, v := range d {
		if v == "" || v == 0 {
			delete(d, k)
		}
	}
	s := call.Step{At: c.sw.Now(), Kind: kind, Detail: d}
	if l != nil {
		s.LegID = l.id
	}
	c.story.mu.Lock()
	defer c.story.mu.Unlock()
	if len(c.story.steps) < maxSteps {
		c.story.steps = append(c.story.steps, s)
	}
}

func (s *story) add(m traced) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.messages) < maxMessages && s.size+m.message.Size() <= maxTraced {
		s.messages = append(s.messages, told{at: m.at.UnixNano(), way: s.wayOf(m.way), sent: m.sent, message: m.message})
		s.size += m.message.Size()
	}
}

// routeIndex returns the index of a route, and adds the route if it is new.
func (s *story) wayOf(w way) uint16 {
	i := slices.Index(s.ways, w)
	if i < 0 {
		i = len(s.ways)
		s.ways = append(s.ways, w)
	}
	return uint16(i)
}

// copy returns the timeline so far.
func (s *story) copy() call.Story {
	s.mu.Lock()
	steps, messages, ways := s.steps, s.messages, s.ways // these slices only grow
	s.mu.Unlock()
	x := call.Story{Steps: slices.Clone(steps)}
	for _, m := range messages {
		w := ways[m.way]
		x.Messages = append(x.Messages, call.Message{At: time.Unix(0, m.at), Sent: m.sent, Transport: string(w.transport), Local: w.local.String(),
			Remote: w.remote.String(), LegID: w.leg, Text: m.message.String()})
	}
	return x
}

// indexLeg makes a leg findable by its dialog and Call-ID. It moves earlier messages with the Call-ID to the call's
// timeline.
func (s *Switch) know(l *leg) {
	l.show()
	s.dialogs.Store(l.sip, l)
	s.byCallID.Store(l.sip.CallID(), l)
	for _, m := range s.opening.take(l.sip.CallID()) {
		m.way.leg = l.id
		l.owner.Load().story.add(m)
	}
}

func (s *Switch) forgetDialog(l *leg) {
	if l.sip != nil {
		s.dialogs.Delete(l.sip)
	}
}

func (s *Switch) forgetCallID(l *leg) {
	if l.sip != nil {
		s.byCallID.CompareAndDelete(l.sip.CallID(), l)
	}
}

// Timeline returns the timeline so far of a call in progress, or of one that has just ended.
func (s *Switch) Story(org, id string) (call.Story, bool) {
	s.mu.Lock()
	c := s.calls[id]
	if c == nil {
		c = s.ending[id]
	}
	s.mu.Unlock()
	if c == nil || c.orgNow() != org {
		return call.Story{}, false
	}
	return c.story.copy(), true
}

// Trace adds a SIP message to the timeline of its call. It is the node's sip.Config.Trace.
func (s *Switch) Trace(e sip.TraceEntry) {
	m := traced{at: e.At, sent: e.Sent, way: way{transport: e.Transport, local: e.Local, remote: e.Remote}, message: e.Message}
	found, ok := s.byCallID.Load(e.CallID)
	if !ok {
		s.opening.keep(e.CallID, m)
		return
	}
	l := found.(*leg)
	m.way.leg = *l.shown.Load()
	l.owner.Load().story.add(m)
}

// publishID makes the leg's id readable in other goroutines. The id changes when the leg moves to another call.
func (l *leg) show() {
	id := l.id
	l.shown.Store(&id)
}

// timelinesPerSecond limits the timelines that are written, because calls have priority over them.
const storiesPerSecond = 200

// allowTimeline reports whether the rate limit allows to write one more timeline.
func (s *Switch) mayTell() bool { return s.stories.Allow(time.Duration(s.Now().UnixNano())) }
