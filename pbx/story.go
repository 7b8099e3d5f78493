package pbx

import (
	"sync"
	"time"

	"soniq/call"
	"soniq/sip"
)

// detail is what a step says beside its kind.
type detail map[string]any

// A story keeps what happened in a call. It is written by the call's goroutine and by signalling, and read by requests.
type story struct {
	mu       sync.Mutex // guards both
	steps    []call.Step
	messages []call.Message
}

// The longest a story gets: what comes after is not kept.
const (
	maxSteps    = 1000
	maxMessages = 400
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

func (s *story) add(m call.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.messages) < maxMessages {
		s.messages = append(s.messages, m)
	}
}

// copy is the story so far.
func (s *story) copy() call.Story {
	s.mu.Lock()
	defer s.mu.Unlock()
	return call.Story{Steps: append([]call.Step(nil), s.steps...), Messages: append([]call.Message(nil), s.messages...)}
}

// know lets the switch find a leg by its dialog and by its Call-ID.
func (s *Switch) know(l *leg) {
	s.dialogs.Store(l.sip, l)
	s.byCallID.Store(l.sip.CallID(), l)
}

func (s *Switch) forget(l *leg) {
	if l.sip != nil {
		s.dialogs.Delete(l.sip)
		s.byCallID.CompareAndDelete(l.sip.CallID(), l)
	}
}

// Trace keeps a SIP message with the call it belongs to; it is the sip.Config.Trace of the node.
func (s *Switch) Trace(e sip.TraceEntry) {
	found, ok := s.byCallID.Load(e.CallID)
	if !ok {
		return
	}
	l := found.(*leg)
	l.owner.Load().story.add(call.Message{At: e.At, Sent: e.Sent, Transport: string(e.Transport), Local: e.Local.String(),
		Remote: e.Remote.String(), LegID: l.id, Text: string(e.Raw)})
}

// storiesPerSecond bounds how many stories are written down: they are worth less than calls.
const storiesPerSecond = 200

// A pacer lets so many things happen per second.
type pacer struct {
	mu     sync.Mutex // guards both
	second int64
	done   int
}

func (p *pacer) allow(now time.Time, perSecond int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := now.Unix(); s != p.second {
		p.second, p.done = s, 0
	}
	p.done++
	return p.done <= perSecond
}
