package pbx

import (
	"context"
	"time"

	"soniq/internal/protocol/sip/transport"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx/calltrace"
)

// detail holds the additional values of a timeline entry.
type detail map[string]any

// addEntry adds an entry to the timeline. Empty details are removed.
func (c *liveCall) addEntry(kind string, l *leg, d detail) {
	for k, v := range d {
		if v == "" || v == 0 {
			delete(d, k)
		}
	}
	s := call.TimelineEntry{At: c.sw.now(), Kind: kind, Detail: d}
	if l != nil {
		s.LegID = l.id
	}
	c.timeline.AddStep(s)
}

// indexLeg makes a leg findable by its dialog and Call-ID. It moves earlier messages with the Call-ID to the call's
// timeline.
func (s *Switch) indexLeg(l *leg) {
	l.publishID()
	s.dialogs.Store(l.sip, l)
	s.byCallID.Store(l.sip.CallID(), l)
	for _, m := range s.earlyTraces.Take(l.sip.CallID()) {
		m.Route.Leg = l.id
		l.owner.Load().timeline.Add(m)
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
	return c.timeline.Copy(), true
}

// Trace adds a SIP message to the timeline of its call. It is the node's sip.Config.Trace.
func (s *Switch) Trace(e transport.TraceEntry) {
	m := calltrace.Message{At: e.At, Sent: e.Sent, Route: calltrace.Route{Transport: e.Transport, Local: e.Local, Remote: e.Remote},
		Message: e.Message}
	found, ok := s.byCallID.Load(e.CallID)
	if !ok {
		s.earlyTraces.Add(e.CallID, m)
		return
	}
	l := found.(*leg)
	m.Route.Leg = *l.publishedID.Load()
	l.owner.Load().timeline.Add(m)
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
	return s.timelinePacer.Allow(time.Duration(s.now().UnixNano()))
}

// finalAnswerWait limits the wait for the answers to our BYEs and CANCELs. A lost message is sent again after half a
// second, and again one second later.
const finalAnswerWait = 3 * time.Second

// awaitFinalMessages waits for the last messages of an ended call, such as our BYE and its answer, so that the
// timeline includes them.
func (s *Switch) awaitFinalMessages(c *liveCall) {
	if !c.keepTimeline {
		s.forgetCall(c)
		return
	}
	limit := time.NewTimer(finalAnswerWait)
	defer limit.Stop()
	for _, l := range c.legs {
		if l.sip == nil || l.owner.Load() != c {
			continue
		}
		select {
		case <-l.sip.Done():
			continue
		case <-limit.C:
		case <-s.writing.Done():
		}
		break
	}
	s.archive.Add(s.writing, c)
}

// forgetCall removes an ended call from the indexes.
func (s *Switch) forgetCall(c *liveCall) {
	for _, l := range c.legs {
		if l.owner.Load() == c {
			s.unindexCallID(l)
		}
	}
	s.mu.Lock()
	delete(s.ending, c.id)
	s.mu.Unlock()
}

// writeTimelines writes the timelines of these calls, then removes the calls.
func (s *Switch) writeTimelines(ctx context.Context, all []*liveCall) error {
	timelines := make([]call.CallTimeline, len(all))
	for i, c := range all {
		timelines[i] = call.CallTimeline{Org: c.new.Org, CallID: c.id, Timeline: c.timeline.Copy()}
	}
	if err := s.cfg.Timelines.WriteTimelines(ctx, timelines); err != nil {
		return err
	}
	for _, c := range all {
		s.forgetCall(c)
	}
	return nil
}
