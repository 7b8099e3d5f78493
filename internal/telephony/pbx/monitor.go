package pbx

import (
	"cmp"
	"context"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx/cause"
)

// callMonitors has the supervisors of a call.
type callMonitors struct{ monitors []*monitor }

// monitor is a supervisor on a call. The supervisor hears all parties. In mode listen no party hears the supervisor,
// in whisper our own side does, in barge all do.
type monitor struct {
	id, user, mode string
	leg            *leg
	dial           *forkedDial
	started, ended time.Time
	dirty          bool
}

// addTo adds the supervisor to the map of leg to heard legs.
func (m *monitor) addTo(c *liveCall, hears map[*leg][]*leg, talk []*leg) {
	if m.leg == nil || !m.leg.up() {
		return
	}
	hears[m.leg] = append([]*leg{}, talk...)
	near := c.near()
	for _, l := range talk {
		if m.mode == "barge" || m.mode == "whisper" && l == near {
			hears[l] = append(hears[l], m.leg)
		}
	}
}

func (m *monitor) status() string {
	switch {
	case !m.ended.IsZero():
		return "ended"
	case m.leg != nil:
		return "active"
	}
	return "ringing"
}

// startMonitor rings the supervisor's phone.
func (c *liveCall) startMonitor(_ context.Context, x call.StartMonitor, done commandReply) {
	if !c.mayMonitor(x, done) {
		return
	}
	c.runAsync(routeTimeout, func(ctx context.Context) func(context.Context) {
		r, refusal, err := c.sw.resolveUserPhones(ctx, c.new.Org, x.UserID, x.DeviceID)
		if x.BrowserOnly && err == nil && refusal == nil {
			refusal = r.keepBrowserPhones()
		}
		return func(ctx context.Context) {
			switch {
			case err != nil:
				done.fail(err)
			case refusal != nil:
				done.fail(op.Invalid(op.Field("user_id", "not_reachable", refusal.Phrase)))
			case c.mayMonitor(x, done): // checked again: another request may have been faster
				c.ringSupervisor(ctx, x, r, done)
			}
		}
	})
}

// mayMonitor reports whether a supervisor can be rung. Otherwise it replies: with the monitor of the user if there is one, else with an
// error.
func (c *liveCall) mayMonitor(x call.StartMonitor, done commandReply) bool {
	if !c.connectedNow() {
		done.state(c, "the call is not connected")
		return false
	}
	for _, m := range c.monitors {
		if m.user == x.UserID && m.ended.IsZero() {
			done.result(call.Result{MonitorID: m.id})
			return false
		}
	}
	if c.isParticipant(x.UserID, nil) {
		done.fail(op.Invalid(op.Field("user_id", "in_call", alreadyInCall)))
		return false
	}
	return true
}

func (c *liveCall) ringSupervisor(ctx context.Context, x call.StartMonitor, r resolvedDestination, done commandReply) {
	m := &monitor{id: cmp.Or(x.ID, db.NewID("mon")), user: x.UserID, mode: x.Mode, started: c.sw.now(), dirty: true}
	if m.mode == "" {
		m.mode = "listen"
	}
	c.monitors = append(c.monitors, m)
	h := c.newDial("monitor", r, c.near())
	h.offer = sdp.LocalOffer
	h.header = autoAnswer
	h.onAnswer = func(ctx context.Context, l *leg, _ sdp.Description) {
		m.leg, m.dial, m.dirty = l, nil, true
		c.addEntry("monitor.active", l, detail{"mode": m.mode})
		c.wireMedia()
		c.change(ctx)
		done.result(call.Result{MonitorID: m.id})
	}
	h.onRing = func(*leg, sip.Provisional) { done.result(call.Result{MonitorID: m.id}) }
	h.onFail = func(ctx context.Context, e sip.Failed) {
		c.stopMonitor(ctx, m)
		done.fail(op.Invalid(op.Field("user_id", "not_reachable", "the supervisor's phone did not answer")))
	}
	m.dial = h
	c.after(confirmTime, func(context.Context) { done.result(call.Result{MonitorID: m.id}) })
	c.addEntry("monitor.ringing", nil, detail{"mode": m.mode})
	c.change(ctx)
	h.start(ctx, transferTimeout)
}

// autoAnswer asks a phone to answer by itself, if it is configured to.
var autoAnswer = []sip.Header{{Name: "Call-Info", Value: "<sip:soniq>;answer-after=0"},
	{Name: "Alert-Info", Value: "<http://soniq>;info=alert-autoanswer;delay=0"}}

func (c *liveCall) monitorOf(id string) *monitor {
	for _, m := range c.monitors {
		if m.id == id && m.ended.IsZero() {
			return m
		}
	}
	return nil
}

// updateMonitor changes the mode.
func (c *liveCall) updateMonitor(ctx context.Context, x call.UpdateMonitor, done commandReply) {
	m := c.monitorOf(x.ID)
	if m == nil {
		done.fail(op.NotFound("monitor"))
		return
	}
	if m.mode != x.Mode {
		m.mode, m.dirty = x.Mode, true
		c.addEntry("monitor.mode", m.leg, detail{"mode": x.Mode})
		c.wireMedia()
		c.change(ctx)
	}
	done.result(call.Result{MonitorID: m.id})
}

func (c *liveCall) endMonitor(ctx context.Context, x call.EndMonitor, done commandReply) {
	m := c.monitorOf(x.ID)
	if m == nil {
		done.fail(op.NotFound("monitor"))
		return
	}
	c.stopMonitor(ctx, m)
	done.ok()
}

// stopMonitor removes the supervisor from the call. The other parties hear no difference.
func (c *liveCall) stopMonitor(ctx context.Context, m *monitor) {
	if !m.ended.IsZero() {
		return
	}
	m.ended, m.dirty = c.sw.now(), true
	if m.dial != nil {
		m.dial.stop()
		m.dial = nil
	}
	c.hangUp(m.leg, sip.Reason{Q850: cause.NormalClearing})
	c.addEntry("monitor.ended", m.leg, nil)
	c.wireMedia()
	c.change(ctx)
}

// monitorLegGone handles a supervisor who hung up.
func (c *liveCall) monitorLegGone(ctx context.Context, l *leg) bool {
	for _, m := range c.monitors {
		if m.leg == l {
			c.stopMonitor(ctx, m)
			return true
		}
	}
	return false
}

// endMonitors marks the monitors as ended when the call ends.
func (c *liveCall) endMonitors() {
	for _, m := range c.monitors {
		if m.ended.IsZero() {
			m.ended, m.dirty = c.sw.now(), true
		}
	}
}

func (c *liveCall) changedMonitors() []call.MonitorState {
	var all []call.MonitorState
	for _, m := range c.monitors {
		if m.dirty {
			m.dirty = false
			all = append(all, call.MonitorState{ID: m.id, SupervisorID: m.user, Mode: m.mode, Status: m.status(), StartedAt: m.started,
				EndedAt: m.ended})
		}
	}
	return all
}
