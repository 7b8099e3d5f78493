package pbx

import (
	"context"
	"hash/maphash"
	"math"
	"sync/atomic"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx/worktime"
	"soniq/internal/telephony/pbx/writequeue"
)

// callProgress has the state of a call, and which part of it is stored.
type callProgress struct {
	pendingInsert *pendingInsert // set while the INSERT of its row runs
	began, done   bool
	restored      bool // from before a restart; may have legs that are not known here
	suspendable   bool // its dialogs have been written
	keepTimeline  bool // the timeline is to be written
	urgent        bool // admitted under overload as a possible emergency call
	answeredByAI  bool // the answering party is an AI agent
	counted       bool // under the limits of calls in progress
	revision      int32
	inserted      atomic.Bool // the INSERT of its row has ended, possibly with an error
	lastStateHash uint64      // hash of the state in the last change
	writes        writequeue.Queue
}

// change writes the current state of the call with the given events, and waits.
func (c *liveCall) change(ctx context.Context, events ...event.Payload) {
	x := c.newChange(events)
	c.writes.Write(ctx, "change", func(ctx context.Context) error { return c.sw.cfg.Store.Change(ctx, x) })
}

// changeDurably writes a change, and calls tell when the change cannot be lost any more. With the journal this is
// at once, and the call goes on during the commit. The state that a restart needs follows after tell.
func (c *liveCall) changeDurably(ctx context.Context, tell func(), events ...event.Payload) {
	x := c.rowChange(events)
	settle, sure := c.sw.cfg.Journal.JournalChange(x)
	if sure = sure && !c.awaitingDurability(); sure {
		tell()
	}
	c.addRestartState(&x)
	with, _ := c.sw.cfg.Journal.JournalDialogs(x)
	c.startChange(ctx, x, func() { settle(); with() })
	if !sure {
		c.writes.FinishStarted(ctx)
		tell()
	}
}

// changeAsync writes a change without waiting for it.
func (c *liveCall) changeAsync(ctx context.Context, events ...event.Payload) {
	c.startChange(ctx, c.newChange(events), func() {})
}

// startChange starts to write a change. It drops the change after the commit, because the write queue keeps the
// closure until the call changes next, possibly an hour later.
func (c *liveCall) startChange(ctx context.Context, x call.Change, committed func()) {
	var kept atomic.Pointer[call.Change]
	kept.Store(&x)
	x.Done = func() { kept.Store(nil); committed() }
	store := c.sw.cfg.Store
	c.writes.StartWrite(ctx, "change", func(ctx context.Context) (wait func() error) {
		if x := kept.Load(); x != nil {
			return store.ChangeAsync(ctx, *x)
		}
		return func() error { return nil }
	})
}

func (c *liveCall) newChange(events []event.Payload) call.Change {
	x := c.rowChange(events)
	c.addRestartState(&x)
	return x
}

// rowChange returns a change without the state for a restart.
func (c *liveCall) rowChange(events []event.Payload) call.Change {
	c.revision++
	now := c.sw.now()
	c.countWork(now)
	x := call.Change{Org: c.new.Org, ID: c.id, Revision: int(c.revision), At: now, Row: c.row(), Legs: c.changedLegs(),
		Monitors: c.changedMonitors(), Recordings: c.changedRecordings(), Events: events}
	c.lastStateHash = maphash.Comparable(stateSeed, x.Row)
	return x
}

// addRestartState adds the state that a restart needs.
func (c *liveCall) addRestartState(x *call.Change) {
	x.Dialogs = c.dialogs()
	c.suspendable = c.suspendable || x.Dialogs != nil
	x.Fleeting = !c.suspendable && !c.restored
}

var stateSeed = maphash.MakeSeed()

// isLastWritten reports whether the last change already wrote this state. It is false with a transfer, because its
// state changes in place.
func (c *liveCall) isLastWritten(s call.State) bool {
	return s.Transfer == nil && c.revision > 0 && c.lastStateHash == maphash.Comparable(stateSeed, s)
}

// row returns the columns of the call's row that change.
func (c *liveCall) row() call.State {
	s := call.State{Status: c.status(), Stage: c.stage(), RingingAt: c.ringing, AnsweredAt: c.answered, HeldSince: c.heldSince,
		Hold: c.hold, Agent: c.agent, UserID: c.new.UserID, DeviceID: c.new.DeviceID, TrunkID: c.new.TrunkID,
		TransferredTo: c.transferredTo, Machine: c.machine, Recording: "off", Consent: "not_required"}
	if !c.answered.IsZero() {
		s.Ring, s.AnsweredBy = c.answered.Sub(c.started), c.answeredBy()
	}
	if d := c.agent.DeviceID; d != "" {
		s.DeviceID = d
	}
	if t := c.agent.TrunkID; t != "" {
		s.TrunkID = t
	}
	if l := c.near(); l != nil {
		s.Muted = l.muted
	}
	if c.transfer != nil {
		s.Transfer = &c.transfer.state
	}
	if r := c.lastRecording(); r != nil {
		s.Recording, s.RecordingID, s.Consent = r.status(), r.new.ID, r.new.Consent
	}
	return s
}

// answeredBy returns the kind of the connected party.
func (c *liveCall) answeredBy() string {
	switch {
	case c.agent.UserID != "":
		return "agent"
	case c.answeredByAI:
		return "ai_agent"
	}
	return "callee"
}

// status returns the status of a call in progress.
func (c *liveCall) status() call.Status {
	switch {
	case !c.answered.IsZero() && !c.heldSince.IsZero():
		return call.OnHold
	case !c.answered.IsZero():
		return call.InProgress
	case c.new.Status == call.Queued && c.ringing.IsZero():
		return call.Queued
	}
	return call.Ringing
}

func (c *liveCall) stage() string {
	switch {
	case c.scripted != nil:
		return c.scripted.place.Stage
	case c.transfer.running():
		return "transfer"
	case len(c.extra) > 0:
		return "conference"
	}
	return "agent"
}

func (c *liveCall) changedLegs() []call.LegState {
	var all []call.LegState
	for _, l := range c.legs {
		if l.dirty {
			s := l.state()
			s.Work = c.workOf(l)
			s.Quality = l.qualityJSON()
			all = append(all, s)
			l.dirty = false
		}
	}
	all, c.detachedLegs = append(all, c.detachedLegs...), nil
	return all
}

// countWork counts the time since the last count for the people who served the call, and notes who serves it now. Call
// it after each change of the legs, of the hold or of the script.
func (c *liveCall) countWork(now time.Time) {
	if c.answered.IsZero() {
		return
	}
	kind, present := worktime.None, []string(nil)
	if c.scripted == nil {
		if kind = worktime.Talk; !c.heldSince.IsZero() {
			kind = worktime.Hold
		}
		for _, l := range c.legs {
			if l.owner.Load() == c && c.isServedBy(l) {
				present = append(present, l.id)
			}
		}
	}
	if c.work.Last.IsZero() {
		c.work.Advance(c.answered, kind, present)
	}
	c.work.Advance(now, kind, present)
}

// isServedBy reports whether the time of the call counts as work of the leg's user: a user who was called. In a
// callback, the user who is rung first serves the call.
func (c *liveCall) isServedBy(l *leg) bool {
	return l.up() && l.caller.UserID != "" && (l.role == "agent" || l.role == "caller" && c.new.Source == "callback")
}

// workOf returns the seconds of a leg that has ended; nil if its user did not serve the call.
func (c *liveCall) workOf(l *leg) *call.Work {
	if !l.over {
		return nil
	}
	if s, ok := c.work.Close(l.id); ok {
		return &call.Work{Talk: s.Talk, Hold: s.Hold}
	}
	return nil
}

func at(t time.Time) db.Time { return db.At(t) }

func optional(s string) *string { return db.Null(s).Ptr() }

func wholeSeconds(d time.Duration) int { return int(math.Round(d.Seconds())) }
