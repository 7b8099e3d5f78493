package pbx

import (
	"context"
	"encoding/json"
	"net/netip"
	"time"

	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx/cause"
	"soniq/internal/telephony/pbx/worktime"
)

// callResume is the interruption of a call by a restart.
type callResume struct {
	interruption *interruption // set after a crash, until both sides are back
}

// Continuation of calls after a restart: the dialogs and media sessions of both sides. The media moves to new ports,
// which both sides get by re-INVITE.

// suspendedCall is the stored state of a call for a restart: two sides, or a caller controlled by a script, which
// then starts from the beginning. The field names are the JSON keys.
type suspendedCall struct {
	A, B savedLeg
	Led  *Handoff         `json:",omitempty"`
	Work *worktime.Ledger `json:",omitempty"`
}

type savedLeg struct {
	ID      string
	Dialog  sip.DialogState
	Session sdp.SessionState
	Via     netip.Addr
	Caller  Caller
	Trunk   string
}

// dialogs returns the state for a restart; nil if the call cannot continue after one.
func (c *liveCall) dialogs() json.RawMessage {
	if v := c.scripted; v != nil {
		return c.scriptedDialog(v)
	}
	if !c.connectedNow() || c.transfer.running() || len(c.extra) > 0 {
		return nil
	}
	a, okA := c.a.snapshot()
	b, okB := c.b.snapshot()
	if !okA || !okB {
		return nil
	}
	return c.marshalSuspended(suspendedCall{A: a, B: b, Work: c.work})
}

// scriptedDialog returns the state for a restart of a scripted caller whom we answered.
func (c *liveCall) scriptedDialog(v *ScriptedCall) json.RawMessage {
	if v.leg != c.a || !c.a.up() || c.transfer.running() || len(c.extra) > 0 {
		return nil
	}
	a, ok := c.a.snapshot()
	if !ok {
		return nil
	}
	return c.marshalSuspended(suspendedCall{A: a, Led: &v.handoff, Work: c.work})
}

func (c *liveCall) marshalSuspended(k suspendedCall) json.RawMessage {
	text, err := json.Marshal(k)
	if err != nil {
		c.sw.cfg.Log.Error("state of a call not encoded; it would not survive a restart", "call", c.id, "err", err)
		return nil
	}
	return text
}

func (l *leg) snapshot() (k savedLeg, ok bool) {
	session, ok := l.session.Snapshot()
	k = savedLeg{ID: l.id, Dialog: l.sip.Snapshot(), Session: session, Via: l.via(), Caller: l.caller, Trunk: l.trunkID}
	return k, ok && k.Dialog.CallID != ""
}

// resumePace is the delay between the re-INVITEs of restored calls. A burst would be lost.
const resumePace = 2 * time.Millisecond

// interruption holds the state of a restored call until it continues.
type interruption struct {
	at         time.Time // time when the node was last alive
	recordings []call.OpenRecording
	consent    string
	unanswered int      // sides whose re-INVITE is not answered yet
	handoff    *Handoff // script of a single caller; nil for two sides
}

// Resume continues the calls that were in progress when the node died, and returns the IDs of those it tries. If a
// side does not answer, the call ends as node_crash by itself. The caller of Resume closes the calls that are not
// returned. It has to be called before Open.
func (s *Switch) Resume(ctx context.Context, all []call.ResumableCall, died time.Time) map[string]bool {
	carried := map[string]bool{}
	for i, x := range all {
		c, err := s.restoreCall(ctx, x, died)
		if err != nil {
			s.cfg.Log.Warn("call not resumed after a restart", "call", x.New.ID, "org", x.New.Org, "err", err)
			continue
		}
		if !s.register(c) {
			continue
		}
		carried[c.id] = true
		c.countAlways()
		delay := time.Duration(i) * resumePace
		s.startCall(ctx, c, func(context.Context) { c.after(delay, c.reofferMedia) })
	}
	return carried
}

// restoreCall creates a call from its stored state.
func (s *Switch) restoreCall(ctx context.Context, x call.ResumableCall, died time.Time) (*liveCall, error) {
	var k suspendedCall
	if err := json.Unmarshal(x.Dialogs, &k); err != nil {
		return nil, err
	}
	c := s.newCall(x.New)
	c.publishOrg()
	c.began, c.restored, c.revision = true, true, int32(x.Revision)
	c.inserted.Store(true)
	c.ringing, c.answered, c.hold = x.State.RingingAt, x.State.AnsweredAt, x.State.Hold
	c.heldSince, c.agent, c.transferredTo, c.machine = x.State.HeldSince, x.State.Agent, x.State.TransferredTo, x.State.Machine
	if k.Work != nil {
		c.work = k.Work
	}
	c.caller = Caller{Org: x.New.Org, Sandbox: x.New.Sandbox, UserID: x.New.UserID, DeviceID: x.New.DeviceID}
	var err error
	if c.policy, err = s.cfg.Identity.Policy(ctx, x.New.Org); err != nil {
		return nil, err
	}
	if c.a, err = c.restoreLeg(ctx, k.A, x); err != nil {
		return nil, err
	}
	since := c.answered
	if k.Led != nil {
		since = latest(c.a.answered, c.started)
	} else if c.b, err = c.restoreLeg(ctx, k.B, x); err != nil {
		c.hangUp(c.a, sip.Reason{Q850: cause.TempFailure})
		c.a.stream.Close()
		return nil, err
	}
	c.afterWhileActive(max(c.maxDuration()-s.now().Sub(since), time.Second), c.maxDurationReached)
	c.interruption = &interruption{at: died, recordings: x.Recordings, consent: x.State.Consent, handoff: k.Led}
	return c, nil
}

// restoreLeg creates a leg from its stored state.
func (c *liveCall) restoreLeg(ctx context.Context, k savedLeg, x call.ResumableCall) (*leg, error) {
	l := c.newLeg("")
	l.id, l.caller, l.trunkID = k.ID, k.Caller, k.Trunk
	for _, s := range x.Legs {
		if s.ID == k.ID {
			l.role, l.number, l.started, l.answered = s.Role, s.Number, s.StartedAt, s.AnsweredAt
			l.heldPeer, l.heldAPI = s.HeldBy == "peer", s.HeldBy == "api"
		}
	}
	if l.emergency = c.wasEmergency(l); l.emergency {
		c.protect()
	}
	var err error
	if l.stream, err = c.openStream(c.a, k.Via); err != nil {
		return nil, err
	}
	if l.session, err = l.stream.RestoreSession(k.Session); err != nil {
		l.stream.Close()
		return nil, err
	}
	l.restarted = &restartState{via: k.Via, target: k.Dialog.Target}
	if k.Dialog.LostWithProcess() {
		l.restarted.lostTransport = k.Dialog.Transport
	}
	if l.trunkID != "" && l.caller.UserID == "" {
		if k.Dialog.Credentials, err = c.sw.cfg.Outbound.Login(ctx, c.new.Org, l.trunkID); err != nil {
			c.sw.cfg.Log.Warn("credentials of a trunk not read; its call will end if the trunk challenges the re-INVITE", "call", c.id, "org",
				c.new.Org, "err", err)
		}
	}
	if l.sip, err = c.sw.server.Restore(k.Dialog, l.deliver); err != nil {
		l.stream.Close()
		return nil, err
	}
	c.sw.indexLeg(l)
	if l.trunkID != "" && l.caller.UserID == "" {
		l.release = append(l.release, c.sw.cfg.Outbound.Resume(c.new.Org, l.trunkID, l.answered, c.preemptFor(l)))
	}
	return l, nil
}

// preemptFor returns the function that ends the call if its channel is needed for an emergency call, or if outbound
// calls are stopped. It returns nil for an emergency call.
func (c *liveCall) preemptFor(l *leg) func() {
	if l.emergency {
		return nil
	}
	return func() { c.inbox.Push(message{run: func(context.Context) { c.endPreempted() }}) }
}

// reofferMedia sends both sides a re-INVITE with the new media address. A side that does not answer has hung up
// meanwhile.
func (c *liveCall) reofferMedia(ctx context.Context) {
	c.addEntry("node.restarted", nil, nil)
	sides := []*leg{c.a, c.b}
	if c.interruption.handoff != nil {
		sides = sides[:1]
	}
	c.interruption.unanswered = len(sides)
	for _, l := range sides {
		if l.lostTransport() != "" {
			c.awaitReconnect(ctx, l)
		} else {
			c.reofferLeg(l)
		}
	}
}

// reofferLeg sends the re-INVITE to one side. After the last answer the call continues.
func (c *liveCall) reofferLeg(l *leg) {
	c.offerMedia(l, l.session.LocalMedia(), func(ctx context.Context, _ sdp.Description, err error) {
		if c.interruption == nil || c.done {
			return
		}
		if err != nil {
			c.sw.cfg.Log.Debug("leg not resumed after a restart", "call", c.id, "leg", l.id, "err", err)
			c.endNotResumed()
			return
		}
		l.apply()
		c.watch(l)
		if c.interruption.unanswered--; c.interruption.unanswered == 0 {
			led := c.interruption.handoff
			c.continueRecordings()
			c.rerunScript(ctx, led)
			c.wireMedia()
			c.change(ctx)
			c.sw.cfg.Log.Info("call resumed after a restart", "call", c.id, "org", c.new.Org)
		}
	})
}

// rerunScript starts the script of an interrupted caller from the beginning.
func (c *liveCall) rerunScript(ctx context.Context, to *Handoff) {
	if to == nil {
		return
	}
	r, refusal, err := c.sw.routeToScript(resolvedDestination{}, *to)
	if refusal != nil || err != nil {
		c.endNotResumed()
		return
	}
	c.runScript(ctx, r, c.a)
}

// endNotResumed ends the call that a crash interrupted.
func (c *liveCall) endNotResumed() {
	c.hangUpAll(call.Outcome{Reason: "node_crash", HangupBy: "system"}, cause.TempFailure)
}

// continueRecordings continues the recordings. The interruption is silence in the file.
func (c *liveCall) continueRecordings() {
	cut := c.interruption
	c.interruption = nil
	for _, o := range cut.recordings {
		r := cut.restoredRecording(o)
		if r.failed = c.openRecorder(r, true); r.failed != nil {
			c.sw.cfg.Log.Error("recording not resumed after a restart", "call", c.id, "org", c.new.Org, "err", r.failed)
		}
		c.recording = r
		if r.paused && r.recorder != nil {
			r.recorder.Pause()
		}
	}
}

// restoredRecording returns a recording in its state before the crash. A pause in progress continues as the same
// pause.
func (x *interruption) restoredRecording(o call.OpenRecording) *recording {
	r := &recording{new: call.NewRecording{ID: o.ID, Name: o.Name, Consent: x.consent}, started: o.StartedAt, pauses: o.Pauses}
	if last := len(o.Pauses) - 1; o.Status == "paused" && last >= 0 {
		p := o.Pauses[last]
		r.paused, r.since, r.reason = true, r.started.Add(time.Duration(p.FromMS)*time.Millisecond), p.Reason
		r.pauses = o.Pauses[:last]
	}
	return r
}

// recoverRecordings finishes the files of a call that did not continue.
func (c *liveCall) recoverRecordings(ctx context.Context) {
	if c.interruption == nil {
		return
	}
	for _, o := range c.interruption.recordings {
		r := c.interruption.restoredRecording(o)
		path, err := c.sw.cfg.Files.Path(o.Name)
		var audio call.Audio
		if err == nil {
			audio, err = c.sw.cfg.RecoverRecording(path)
		}
		if err != nil {
			audio = call.Audio{Err: err}
		}
		c.writeRecording(ctx, r, audio)
	}
}
