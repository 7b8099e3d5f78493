package pbx

import (
	"context"
	"encoding/json"
	"net/netip"
	"time"

	"soniq/internal/protocol/media"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
)

// Continuation of calls after a restart: the dialogs and media sessions of both sides. The media moves to new ports,
// which both sides get by re-INVITE.

// suspendedCall is the stored state of a call for a restart: two sides, or a caller controlled by a script, which
// then starts from the beginning. The field names are the JSON keys.
type suspended struct {
	A, B keptLeg
	Led  *Lead `json:",omitempty"`
}

type keptLeg struct {
	ID      string
	Dialog  sip.DialogState
	Session media.SessionState
	Via     netip.Addr
	Caller  Caller
	Trunk   string
}

// dialogs returns the state for a restart; nil if the call cannot continue after one.
func (c *liveCall) dialogs() json.RawMessage {
	if v := c.visit; v != nil {
		return c.ledDialog(v)
	}
	if !c.connectedNow() || c.transfer.running() || len(c.extra) > 0 {
		return nil
	}
	a, okA := c.a.keep()
	b, okB := c.b.keep()
	if !okA || !okB {
		return nil
	}
	return c.kept(suspended{A: a, B: b})
}

// scriptedDialog returns the state for a restart of a scripted caller whom we answered.
func (c *liveCall) ledDialog(v *Visit) json.RawMessage {
	if v.leg != c.a || !c.a.up() || c.transfer.running() || len(c.extra) > 0 {
		return nil
	}
	a, ok := c.a.keep()
	if !ok {
		return nil
	}
	return c.kept(suspended{A: a, Led: &v.lead})
}

func (c *liveCall) kept(k suspended) json.RawMessage {
	text, err := json.Marshal(k)
	if err != nil {
		c.sw.Log.Error("state of a call not encoded; it would not survive a restart", "call", c.id, "err", err)
		return nil
	}
	return text
}

func (l *leg) keep() (k keptLeg, ok bool) {
	session, ok := l.session.Snapshot()
	k = keptLeg{ID: l.id, Dialog: l.sip.Snapshot(), Session: session, Via: l.via(), Caller: l.caller, Trunk: l.trunkID}
	return k, ok && k.Dialog.CallID != ""
}

// resumePace is the delay between the re-INVITEs of restored calls. A burst would be lost.
const resumePace = 2 * time.Millisecond

// interruption holds the state of a restored call until it continues.
type cut struct {
	at         time.Time // time when the node was last alive
	recordings []call.Open
	consent    string
	left       int   // sides whose re-INVITE is not answered yet
	led        *Lead // script of a single caller; nil for two sides
}

// Resume continues the calls that were in progress when the node died, and returns the IDs of those it tries. If a
// side does not answer, the call ends as node_crash by itself. The caller of Resume closes the calls that are not
// returned. It has to be called before Open.
func (s *Switch) Resume(ctx context.Context, all []call.Suspended, died time.Time) map[string]bool {
	carried := map[string]bool{}
	for i, x := range all {
		c, err := s.restore(ctx, x, died)
		if err != nil {
			s.Log.Warn("call not resumed after a restart", "call", x.New.ID, "org", x.New.Org, "err", err)
			continue
		}
		if !s.take(c) {
			continue
		}
		carried[c.id] = true
		delay := time.Duration(i) * resumePace
		s.start(ctx, c, func(context.Context) { c.later(delay, c.reanchor) })
	}
	return carried
}

// restoreCall creates a call from its stored state.
func (s *Switch) restore(ctx context.Context, x call.Suspended, died time.Time) (*liveCall, error) {
	var k suspended
	if err := json.Unmarshal(x.Dialogs, &k); err != nil {
		return nil, err
	}
	c := s.newCall(x.New)
	c.belong()
	c.began, c.restored, c.revision = true, true, x.Revision
	c.ringing, c.answered, c.hold = x.State.RingingAt, x.State.AnsweredAt, x.State.Hold
	c.heldSince, c.agent, c.transferredTo, c.machine = x.State.HeldSince, x.State.Agent, x.State.TransferredTo, x.State.Machine
	c.caller = Caller{Org: x.New.Org, Sandbox: x.New.Sandbox, UserID: x.New.UserID, DeviceID: x.New.DeviceID}
	var err error
	if c.policy, err = s.Directory.Policy(ctx, x.New.Org); err != nil {
		return nil, err
	}
	if c.a, err = c.revive(ctx, k.A, x); err != nil {
		return nil, err
	}
	since := c.answered
	if k.Led != nil {
		since = latest(c.a.answered, c.started)
	} else if c.b, err = c.revive(ctx, k.B, x); err != nil {
		c.hangUp(c.a, sip.Reason{Q850: tempFailure})
		c.a.stream.Close()
		return nil, err
	}
	c.limit(max(c.maxDuration()-s.Now().Sub(since), time.Second), c.timeUp)
	c.cut = &cut{at: died, recordings: x.Recordings, consent: x.State.Consent, led: k.Led}
	return c, nil
}

// restoreLeg creates a leg from its stored state.
func (c *liveCall) revive(ctx context.Context, k keptLeg, x call.Suspended) (*leg, error) {
	l := c.newLeg("")
	l.id, l.caller, l.trunkID = k.ID, k.Caller, k.Trunk
	for _, s := range x.Legs {
		if s.ID == k.ID {
			l.role, l.number, l.started, l.answered = s.Role, s.Number, s.StartedAt, s.AnsweredAt
			l.heldPeer, l.heldAPI = s.HeldBy == "peer", s.HeldBy == "api"
		}
	}
	l.help = c.wasForHelp(l)
	var err error
	if l.stream, err = c.sw.openStream(c.a, k.Via); err != nil {
		return nil, err
	}
	if l.session, err = l.stream.RestoreSession(k.Session); err != nil {
		l.stream.Close()
		return nil, err
	}
	l.earlier = &earlier{via: k.Via, target: k.Dialog.Target}
	if k.Dialog.Lost() {
		l.earlier.lost = k.Dialog.Transport
	}
	if l.trunkID != "" && l.caller.UserID == "" {
		if k.Dialog.Credentials, err = c.sw.Directory.Login(ctx, c.new.Org, l.trunkID); err != nil {
			c.sw.Log.Warn("credentials of a trunk not read; its call will end if the trunk challenges the re-INVITE", "call", c.id, "org", c.new.Org, "err", err)
		}
	}
	if l.sip, err = c.sw.server.Restore(k.Dialog, l.tell); err != nil {
		l.stream.Close()
		return nil, err
	}
	c.sw.know(l)
	if l.trunkID != "" && l.caller.UserID == "" {
		l.release = append(l.release, c.sw.Directory.Resume(c.new.Org, l.trunkID, l.answered, c.cutOf(l)))
	}
	return l, nil
}

// preemptFor returns the function that ends the call if its channel is needed for an emergency call, or if outbound
// calls are stopped. It returns nil for an emergency call.
func (c *liveCall) cutOf(l *leg) func() {
	if l.help {
		return nil
	}
	return func() {
		c.inbox.push(message{run: func(context.Context) {
			c.hangUpAll(call.Outcome{Reason: "blocked", HangupBy: "system", Q850: preemption}, preemption)
		}})
	}
}

// reofferMedia sends both sides a re-INVITE with the new media address. A side that does not answer has hung up
// meanwhile.
func (c *liveCall) reanchor(ctx context.Context) {
	c.step("node.restarted", nil, nil)
	sides := []*leg{c.a, c.b}
	if c.cut.led != nil {
		sides = sides[:1]
	}
	c.cut.left = len(sides)
	for _, l := range sides {
		if l.lost() != "" {
			c.await(ctx, l)
		} else {
			c.anchor(l)
		}
	}
}

// reofferLeg sends the re-INVITE to one side. After the last answer the call continues.
func (c *liveCall) anchor(l *leg) {
	c.ask(l, l.session.Ours(), func(ctx context.Context, _ media.Description, err error) {
		if c.cut == nil || c.done {
			return
		}
		if err != nil {
			c.sw.Log.Debug("leg not resumed after a restart", "call", c.id, "leg", l.id, "err", err)
			c.stayedAway()
			return
		}
		l.apply()
		c.watch(l)
		if c.cut.left--; c.cut.left == 0 {
			led := c.cut.led
			c.goOnRecording()
			c.leadAgain(ctx, led)
			c.wire()
			c.change(ctx)
			c.sw.Log.Info("call resumed after a restart", "call", c.id, "org", c.new.Org)
		}
	})
}

// rerunScript starts the script of an interrupted caller from the beginning.
func (c *liveCall) leadAgain(ctx context.Context, to *Lead) {
	if to == nil {
		return
	}
	r, refusal, err := c.sw.ledBy(reach{}, *to)
	if refusal != nil || err != nil {
		c.stayedAway()
		return
	}
	c.visitBy(ctx, r, c.a)
}

// endNotResumed ends the call that a crash interrupted.
func (c *liveCall) stayedAway() {
	c.hangUpAll(call.Outcome{Reason: "node_crash", HangupBy: "system"}, tempFailure)
}

// continueRecordings continues the recordings. The interruption is silence in the file.
func (c *liveCall) goOnRecording() {
	cut := c.cut
	c.cut = nil
	for _, o := range cut.recordings {
		r := cut.recording(o)
		if r.failed = c.openRecorder(r, true); r.failed != nil {
			c.sw.Log.Error("recording not resumed after a restart", "call", c.id, "org", c.new.Org, "err", r.failed)
		}
		c.recording = r
		if r.paused && r.recorder != nil {
			r.recorder.Pause()
		}
	}
}

// restoredRecording returns a recording in its state before the crash. A pause in progress continues as the same
// pause.
func (x *cut) recording(o call.Open) *recording {
	r := &recording{new: call.NewRecording{ID: o.ID, Name: o.Name, Consent: x.consent}, started: o.StartedAt, pauses: o.Pauses}
	if last := len(o.Pauses) - 1; o.Status == "paused" && last >= 0 {
		p := o.Pauses[last]
		r.paused, r.since, r.reason = true, r.started.Add(time.Duration(p.FromMS)*time.Millisecond), p.Reason
		r.pauses = o.Pauses[:last]
	}
	return r
}

// recoverRecordings finishes the files of a call that did not continue.
func (c *liveCall) saveRecordings(ctx context.Context) {
	if c.cut == nil {
		return
	}
	for _, o := range c.cut.recordings {
		r := c.cut.recording(o)
		path, err := c.sw.Files.Path(o.Name)
		var audio call.Audio
		if err == nil {
			audio, err = c.sw.Salvage(path)
		}
		if err != nil {
			audio = call.Audio{Err: err}
		}
		c.writeRecording(ctx, r, audio)
	}
}
