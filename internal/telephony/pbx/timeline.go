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
type timeline struct {
	mu       sync.Mutex // guards the rest
	steps    []call.TimelineEntry
	messages []traceEntry
	routes   []traceRoute // distinct routes of the messages
	size     int          // total size of the messages in bytes
}

// tracedMessage is a SIP message of a leg.
type tracedMessage struct {
	at      time.Time
	sent    bool
	route   traceRoute
	message sip.RawMessage
}

// traceRoute is the transport and the addresses of a message.
type traceRoute struct {
	transport     sip.Transport
	local, remote netip.AddrPort
	leg           string
}

// traceEntry is a compact tracedMessage. A call has about a dozen messages on two routes.
type traceEntry struct {
	at      int64 // in nanoseconds since 1970
	route   uint16
	sent    bool
	message sip.RawMessage
}

// Size limits of a timeline. Later entries are dropped.
const (
	maxSteps    = 1000
	maxMessages = 400
	maxTraced   = 128 << 10 // bytes of all messages
)

// addEntry adds an entry to the timeline. Empty details are removed.
func (c *liveCall) addEntry(kind string, l *leg, d detail) {
	for k, v := range d {
		if v == "" || v == 0 {
			delete(d, k)
		}
	}
	s := call.TimelineEntry{At: c.sw.Now(), Kind: kind, Detail: d}
	if l != nil {
		s.LegID = l.id
	}
	c.timeline.mu.Lock()
	defer c.timeline.mu.Unlock()
	if len(c.timeline.steps) < maxSteps {
		c.timeline.steps = append(c.timeline.steps, s)
	}
}

func (s *timeline) add(m tracedMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.messages) < maxMessages && s.size+m.message.Size() <= maxTraced {
		s.messages = append(s.messages, traceEntry{at: m.at.UnixNano(), route: s.routeIndex(m.route), sent: m.sent, message: m.message})
		s.size += m.message.Size()
	}
}

// routeIndex returns the index of a route, and adds the route if it is new.
func (s *timeline) routeIndex(w traceRoute) uint16 {
	i := slices.Index(s.routes, w)
	if i < 0 {
		i = len(s.routes)
		s.routes = append(s.routes, w)
	}
	return uint16(i)
}

// copy returns the timeline so far.
func (s *timeline) copy() call.Timeline {
	s.mu.Lock()
	steps, messages, ways := s.steps, s.messages, s.routes // these slices only grow
	s.mu.Unlock()
	x := call.Timeline{Steps: slices.Clone(steps)}
	for _, m := range messages {
		w := ways[m.route]
		x.Messages = append(x.Messages, call.Message{At: time.Unix(0, m.at), Sent: m.sent, Transport: string(w.transport), Local: w.local.String(),
			Remote: w.remote.String(), LegID: w.leg, Text: m.message.String()})
	}
	return x
}

// indexLeg makes a leg findable by its dialog and Call-ID. It moves earlier messages with the Call-ID to the call's
// timeline.
func (s *Switch) indexLeg(l *leg) {
	l.publishID()
	s.dialogs.Store(l.sip, l)
	s.byCallID.Store(l.sip.CallID(), l)
	for _, m := range s.earlyTraces.take(l.sip.CallID()) {
		m.route.leg = l.id
		l.owner.Load().timeline.add(m)
	}
}

func (s *Switch) unindexDialog(l *leg) {
	if l.sip != nil {
		s.dialogs.Delete(l.sip)
	}
}

func (s *Switch) unindexCallID(l *leg) {
	if l.sip != nil {
		s.byCallID.CompareAndDelete(l.sip.CallID(), l)
	}
}

// Timeline returns the timeline so far of a call in progress, or of one that has just ended.
func (s *Switch) Timeline(org, id string) (call.Timeline, bool) {
	s.mu.Lock()
	c := s.calls[id]
	if c == nil {
		c = s.ending[id]
	}
	s.mu.Unlock()
	if c == nil || c.orgNow() != org {
		return call.Timeline{}, false
	}
	return c.timeline.copy(), true
}

// Trace adds a SIP message to the timeline of its call. It is the node's sip.Config.Trace.
func (s *Switch) Trace(e sip.TraceEntry) {
	m := tracedMessage{at: e.At, sent: e.Sent, route: traceRoute{transport: e.Transport, local: e.Local, remote: e.Remote}, message: e.Message}
	found, ok := s.byCallID.Load(e.CallID)
	if !ok {
		s.earlyTraces.add(e.CallID, m)
		return
	}
	l := found.(*leg)
	m.route.leg = *l.publishedID.Load()
	l.owner.Load().timeline.add(m)
}

// publishID makes the leg's id readable in other goroutines. The id changes when the leg moves to another call.
func (l *leg) publishID() {
	id := l.id
	l.publishedID.Store(&id)
}

// timelinesPerSecond limits the timelines that are written, because calls have priority over them.
const timelinesPerSecond = 200

// allowTimeline reports whether the rate limit allows to write one more timeline.
func (s *Switch) allowTimeline() bool {
	return s.timelinePacer.Allow(time.Duration(s.Now().UnixNano()))
}
