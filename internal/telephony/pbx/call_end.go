package pbx

import (
	"context"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"soniq/internal/platform/op"
	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx/cause"
	"soniq/internal/telephony/pbx/worktime"
)

// callOutcome is the end of a call.
type callOutcome struct {
	outcome call.Outcome
	onEnd   []func()
}

// onBye ends the call, or only the part of it that the leg belongs to.
func (c *liveCall) onBye(ctx context.Context, l *leg, e sip.Bye) {
	q850 := e.Q850
	if q850 == 0 {
		q850 = cause.NormalClearing
	}
	by := c.sideOf(l)
	c.legGone(ctx, l, call.Outcome{Reason: by + "_hangup", HangupBy: by, Q850: q850}, q850)
}

// sideOf returns the name of a leg's side in end_reason and ended_by.
func (c *liveCall) sideOf(l *leg) string {
	switch {
	case l == c.a:
		return "caller"
	case l.caller.UserID != "":
		return "agent"
	}
	return "callee"
}

// onLost ends the call because one side cannot be reached any more.
func (c *liveCall) onLost(ctx context.Context, l *leg, e sip.Lost) {
	if l.dial != nil {
		l.dial.failed(ctx, l, sip.Failed{Status: 408})
		return
	}
	c.sw.cfg.Log.Debug("leg lost", "call", c.id, "why", e.Why)
	o := call.Outcome{Reason: "timeout", HangupBy: "system"}
	if l.rtpProbing {
		o.Reason = "media_timeout"
	}
	c.legGone(ctx, l, o, cause.TempFailure)
}

// legGone continues with the remaining legs after one leg ended, or ends the call.
func (c *liveCall) legGone(ctx context.Context, l *leg, o call.Outcome, q850 int) {
	switch {
	case c.monitorLegGone(ctx, l), c.extraLegGone(ctx, l), c.transferLegGone(ctx, l), c.scriptLegGone(l):
	case l == c.a && len(c.extra) > 0 && c.b != nil:
		c.a = c.promote()
		c.continueWithRest(ctx)
	case l == c.b && len(c.extra) > 0:
		c.b = c.promote()
		c.continueWithRest(ctx)
	case c.returnToScript(ctx, l):
	case l == c.a, l == c.b:
		c.hangUpAll(o, q850)
	}
}

// continueWithRest updates media and recording for the remaining legs.
func (c *liveCall) continueWithRest(ctx context.Context) {
	c.wireMedia()
	c.updateRecordingSides()
	c.change(ctx)
}

// finish writes the call's record and frees its resources. Failed writes stay in the write queue.
func (c *liveCall) finish(ctx context.Context) {
	now := c.sw.now()
	if c.interruption == nil {
		c.work.Advance(now, worktime.None, nil)
	}
	if !c.heldSince.IsZero() {
		c.hold += now.Sub(c.heldSince)
		c.heldSince = time.Time{}
	}
	if c.answered.IsZero() {
		c.sw.stats.failed.Add(1)
	}
	c.endMonitors()
	c.endScripts()
	c.awaitMessages()
	if r := c.recording; r != nil && r.recorder != nil {
		r.recorder.Stop()
	}
	c.stopReceiving()
	if c.began {
		c.writeEnd(ctx, c.endRecord())
		c.failWaitingCommands()
		c.closeRecordings(ctx)
	}
	c.closeMedia()
}

// endAfterPanic ends the call because its code panicked: its state may be half changed. An answered emergency call goes
// on. A second panic, while the parties are hung up or the record is written, ends the process.
func (c *liveCall) endAfterPanic() {
	if c.protected.Load() && !c.answered.IsZero() {
		return
	}
	o := call.Outcome{Reason: "internal_error", HangupBy: "system"}
	if c.a != nil && c.a.answered.IsZero() {
		o.SIPStatus = 500
		c.reject(500, "Server Internal Error", o)
	}
	c.hangUpAll(o, cause.TempFailure)
}

// reportPanic recovers from a panic of a goroutine that works for the call, and ends the call by a message to its inbox. It
// must be deferred.
func (c *liveCall) reportPanic() {
	if x := recover(); x != nil {
		c.logPanic(x, debug.Stack())
		c.inbox.Push(message{run: func(context.Context) { c.endAfterPanic() }})
	}
}

// logPanic logs a panic with its stack. It may be called from any goroutine.
func (c *liveCall) logPanic(fault any, stack []byte) {
	c.sw.cfg.Log.Error("call failed by a fault in its code", "call", c.id, "panic", fault, "stack", string(stack))
}

// failWaitingCommands answers the commands that the end of the call overtook.
func (c *liveCall) failWaitingCommands() {
	for _, f := range c.onEnd {
		f()
	}
	for _, r := range c.waiting {
		r.fail(op.State("the call has ended", "completed", call.ActionsAfterEnd...))
	}
}

// endRecord returns the final record of the call.
func (c *liveCall) endRecord() call.Ended {
	e := call.Ended{New: c.new, Outcome: c.outcome, At: c.endedAt(), AnsweredAt: c.answered, RingingAt: c.ringing, Hold: c.hold,
		Offered: int(c.offered), Recording: c.recordingID(), Revision: int(c.revision), State: c.row(), Monitors: c.changedMonitors()}
	e.StateWritten = c.isLastWritten(e.State)
	for _, l := range c.legs {
		if l.owner.Load() == c {
			c.markLegEnded(l, c.outcome.Reason, 0)
			l.dirty = true
		}
	}
	e.Legs = c.changedLegs()
	e.PartsComplete, e.HasDialogs = !c.restored, c.suspendable
	if c.sw.allowTimeline() {
		c.addEntry("call.ended", nil, detail{"reason": c.outcome.Reason, "by": c.outcome.HangupBy, "sip_status": c.outcome.SIPStatus})
		c.keepTimeline = true
	}
	return e
}

// endedAt returns the current time. For a call that a crash interrupted and that did not continue, it returns the
// time when the node was last alive.
func (c *liveCall) endedAt() time.Time {
	if c.interruption == nil {
		return c.sw.now()
	}
	return latest(c.interruption.at, c.started, c.answered)
}

func latest(first time.Time, others ...time.Time) time.Time {
	for _, t := range others {
		if t.After(first) {
			first = t
		}
	}
	return first
}

func (c *liveCall) writeEnd(ctx context.Context, e call.Ended) {
	c.writes.Write(ctx, "end", func(ctx context.Context) error { return c.sw.cfg.Store.End(ctx, e) })
	c.sw.cfg.Log.Debug("call ended", "call", c.id, "org", e.Org, "status", e.Status(), "reason", e.Reason)
}

// stopReceiving closes the inbox and removes the call from the indexes. Later messages for it report that it has
// ended.
func (c *liveCall) stopReceiving() {
	c.leaveLimits()
	for _, t := range c.timers {
		t.Stop()
	}
	for _, m := range c.inbox.Close() {
		switch {
		case m.ifEnded != nil:
			m.ifEnded()
		case m.leg != nil && m.leg.owner.Load() != c:
			m.leg.deliver(m.event)
		}
	}
	for _, l := range c.legs {
		if l.owner.Load() == c {
			c.sw.unindexDialog(l)
			c.sw.disconnected.remove(l.caller.DeviceID, l)
			l.releaseResources()
		}
	}
}

// closeMedia closes the streams after the recording has all their packets.
func (c *liveCall) closeMedia() {
	c.closeMixer()
	for _, l := range c.legs {
		if l.stream != nil && l.owner.Load() == c {
			l.stream.Close()
		}
	}
}

// releaseMemory drops everything that only a call in progress needs. An ended call is kept for its timeline only.
func (c *liveCall) releaseMemory() {
	for _, l := range c.legs {
		if l.owner.Load() == c {
			l.in, l.stream, l.session, l.phone, l.trunk, l.localAnswer, l.playback = nil, nil, nil, nil, nil, nil, nil
			l.offer = sdp.Description{}
		}
	}
	c.recording, c.recorded = nil, nil
	c.dials, c.timers, c.waiting, c.onEnd, c.pendingInsert, c.mixer, c.transfer = nil, nil, nil, nil, nil, nil, nil
}

// emptyPoll is the interval of the check whether the calls of an organisation have ended.
const emptyPoll = 20 * time.Millisecond

// HangUp ends calls that another node has closed while this one did not renew its lease. IDs of other calls are ignored.
func (s *Switch) HangUp(ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if c := s.calls[id]; c != nil {
			c.inbox.Push(message{run: func(context.Context) {
				c.hangUpAll(call.Outcome{Reason: "node_crash", HangupBy: "system"}, cause.TempFailure)
			}})
		}
	}
}

// CallIDs returns the IDs of the calls in progress.
func (s *Switch) CallIDs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.calls))
}

// EndOrg hangs up all calls of an organisation, including new ones, and waits until they are written with recordings
// and timelines. It returns the number of calls it hung up. If ctx ends first, the remaining calls still end by
// themselves.
func (s *Switch) EndOrg(ctx context.Context, org string) (ended int, err error) {
	told := map[string]bool{}
	tick := time.NewTicker(emptyPoll)
	defer tick.Stop()
	for s.hangUpOrg(org, told) > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return len(told), ctx.Err()
		}
	}
	return len(told), nil
}

// hangUpOrg hangs up the calls of an organisation that are not in told yet. It returns the number of calls that
// are not written.
func (s *Switch) hangUpOrg(org string, told map[string]bool) (left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, c := range s.calls {
		if c.orgNow() != org {
			continue
		}
		left++
		if told[id] {
			continue
		}
		told[id] = true
		c.inbox.Push(message{run: func(context.Context) {
			c.hangUpAll(call.Outcome{Reason: "api", HangupBy: "api"}, cause.NormalClearing)
		}})
	}
	for _, c := range s.ending {
		if c.orgNow() == org {
			left++
		}
	}
	return left
}
