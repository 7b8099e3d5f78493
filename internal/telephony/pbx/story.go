package pbx

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
)

// detail is what a step says beside its kind.
type detail map[string]any

// A story keeps what happened in a call. It is written by the call's goroutine and by signalling, and read by requests.
type story struct {
	mu       sync.Mutex // guards the rest
	steps    []call.Step
	messages []told
	ways     []way // those that messages took
	size     int   // of the messages, in bytes
}

// traced is a SIP message of a leg.
type traced struct {
	at      time.Time
	sent    bool
	way     way
	message sip.Raw
}

// A way is where a leg's messages go.
type way struct {
	transport     sip.Transport
	local, remote netip.AddrPort
	leg           string
}

// told is a traced message as a story keeps it: calls have a dozen, which go two ways.
type told struct {
	at      int64 // in nanoseconds since 1970
	way     uint16
	sent    bool
	message sip.Raw
}

// The longest a story gets: what comes after is not kept.
const (
	maxSteps    = 1000
	maxMessages = 400
	maxTraced   = 128 << 10 // bytes of messages
)

// step notes what happened. Empty details are left out.
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

// wayOf is the index of a way.
func (s *story) wayOf(w way) uint16 {
	i := slices.Index(s.ways, w)
	if i < 0 {
		i = len(s.ways)
		s.ways = append(s.ways, w)
	}
	return uint16(i)
}

// copy is the story so far.
func (s *story) copy() call.Story {
	s.mu.Lock()
	steps, messages, ways := s.steps, s.messages, s.ways // they only grow
	s.mu.Unlock()
	x := call.Story{Steps: slices.Clone(steps)}
	for _, m := range messages {
		w := ways[m.way]
		x.Messages = append(x.Messages, call.Message{At: time.Unix(0, m.at), Sent: m.sent, Transport: string(w.transport), Local: w.local.String(),
			Remote: w.remote.String(), LegID: w.leg, Text: m.message.String()})
	}
	return x
}

// know lets the switch find a leg by its dialog and by its Call-ID. What was said before it was known is its story too.
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

// Story tells what happened so far in a call that is in progress, or has just ended.
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

// Trace keeps a SIP message with the call it belongs to; it is the sip.Config.Trace of the node.
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

// show lets those who are not in the call's goroutine read the leg's id. It changes when the leg is adopted.
func (l *leg) show() {
	id := l.id
	l.shown.Store(&id)
}

// storiesPerSecond bounds how many stories are written down: they are worth less than calls.
const storiesPerSecond = 200

// mayTell reports whether one more story may be written down now.
func (s *Switch) mayTell() bool { return s.stories.Allow(time.Duration(s.Now().UnixNano())) }
