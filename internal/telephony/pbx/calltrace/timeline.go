// Package calltrace collects the events and SIP messages of calls in progress.
package calltrace

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/sip/transport"
	"soniq/internal/telephony/call"
)

// Timeline collects the events and SIP messages of a call. The call's goroutine and the SIP server write it, API
// requests read it.
type Timeline struct {
	mu       sync.Mutex // guards the rest
	steps    []call.TimelineEntry
	messages []entry
	routes   []Route // distinct routes of the messages
	size     int     // total size of the messages in bytes
}

// Message is a SIP message of a leg.
type Message struct {
	At      time.Time
	Sent    bool
	Route   Route
	Message transport.RawMessage
}

// Route is the transport and the addresses of a message.
type Route struct {
	Transport     sipmsg.Transport
	Local, Remote netip.AddrPort
	Leg           string
}

// entry is a compact Message. A call has about a dozen messages on two routes.
type entry struct {
	at      int64 // in nanoseconds since 1970
	route   uint16
	sent    bool
	message transport.RawMessage
}

// Size limits of a timeline. Later entries are dropped.
const (
	maxSteps    = 1000
	maxMessages = 400
	maxTraced   = 128 << 10 // bytes of all messages
)

// Add adds a SIP message, unless the timeline is full.
func (s *Timeline) Add(m Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.messages) < maxMessages && s.size+m.Message.Size() <= maxTraced {
		s.messages = append(s.messages, entry{at: m.At.UnixNano(), route: s.routeIndex(m.Route), sent: m.Sent, message: m.Message})
		s.size += m.Message.Size()
	}
}

// routeIndex returns the index of a route, and adds the route if it is new.
func (s *Timeline) routeIndex(w Route) uint16 {
	i := slices.Index(s.routes, w)
	if i < 0 {
		i = len(s.routes)
		s.routes = append(s.routes, w)
	}
	return uint16(i)
}

// Copy returns the timeline so far.
func (s *Timeline) Copy() call.Timeline {
	s.mu.Lock()
	steps, messages, ways := s.steps, s.messages, s.routes // these slices only grow
	s.mu.Unlock()
	x := call.Timeline{Steps: slices.Clone(steps)}
	for _, m := range messages {
		w := ways[m.route]
		x.Messages = append(x.Messages, call.Message{At: time.Unix(0, m.at), Sent: m.sent, Transport: string(w.Transport),
			Local: w.Local.String(), Remote: w.Remote.String(), LegID: w.Leg, Text: m.message.String()})
	}
	return x
}

// AddStep adds an entry to the timeline.
func (s *Timeline) AddStep(e call.TimelineEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.steps) < maxSteps {
		s.steps = append(s.steps, e)
	}
}
