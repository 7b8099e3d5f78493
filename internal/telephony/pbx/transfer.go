package pbx

import (
	"context"
	"time"

	"soniq/internal/platform/event"
	"soniq/internal/protocol/media"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
)

// A transfer hands the kept side over from one leg to another.
type transfer struct {
	c       *liveCall
	state   call.TransferState
	onFail  string
	kept    *leg // who stays, and hears music or ringing meanwhile
	from    *leg // who is to leave
	target  *leg // who answered; nil before
	hunt    *hunt
	user    *Destination // who is rung; nil for numbers outside
	rings   bool
	refer   *sip.Refer // asked for by a phone
	reply   reply      // asked for by command: answered as soon as it rings, or fails
	unshown bool       // the target gets no screen pop
	early   bool       // complete as soon as the target answers: the one who asked has hung up
	// returning says that it has failed, and the one who transferred is fetched again.
	returning bool
}

// running reports whether the transfer is under way.
func (t *transfer) running() bool {
	if t == nil {
		return false
	}
	switch t.state.Status {
	case "completed", "failed", "canceled":
		return false
	}
	return true
}

func (t *transfer) allowed() []string {
	if t.state.Status == "consulting" {
		return []string{"transfer/complete", "transfer/cancel"}
	}
	return []string{"transfer/cancel"}
}

// clipFor is what the sides of a transfer hear while they wait.
func (t *transfer) clipFor(l *leg) *media.Clip {
	switch {
	case !t.running() && !t.returning:
		return nil
	case l == t.kept && t.state.Mode == "blind" && t.rings:
		return t.c.ringback()
	case l == t.kept:
		return t.c.music()
	case l == t.from && t.target == nil:
		return t.c.ringback()
	}
	return nil
}

// startTransfer hands the far side over to somebody else, by command.
func (c *liveCall) startTransfer(ctx context.Context, x call.Transfer, done reply) {
	switch {
	case c.visit != nil:
		c.leadElsewhere(c.visit, x, done)
		return
	case !c.connectedNow():
		done.state(c, "the call is not connected")
		return
	case c.transfer.running():
		done.state(c, "a transfer is under way")
		return
	}
	t := &transfer{c: c, onFail: x.OnFail, kept: c.far(), from: c.near(), reply: done, unshown: x.Unshown,
		state: call.TransferState{Mode: "blind", To: x.To, Status: "started", StartedAt: c.sw.Now()}}
	if x.Warm {
		t.state.Mode = "warm"
	}
	c.lead(t, x.From, x.To, x.Timeout)
}

// lead finds the way to the target and rings it.
func (c *liveCall) lead(t *transfer, from, to string, timeout time.Duration) {
	c.transfer = t
	c.later(confirmTime, func(context.Context) {
		if c.transfer == t && t.running() {
			t.reply.ok()
		}
	})
	caller := t.from.caller
	if caller.Org == "" {
		caller = c.caller
	}
	caller.ShowNumber, caller.Program = from, t.refer == nil
	c.aside(routeTimeout, func(ctx context.Context) func(context.Context) {
		find := c.sw.reach
		if t.state.Mode == "warm" { // who is asked first is asked on their phones, whatever they want of calls
			find = c.sw.askable
		}
		r, refusal, err := find(ctx, caller, to)
		return func(ctx context.Context) {
			if c.transfer != t || !t.running() {
				r.close()
				return
			}
			t.found(ctx, r, refusal, err, timeout)
		}
	})
}

// confirmTime is how long whoever asks for somebody to be fetched waits for the first ring. Some telephones ring late, or answer
// without: from then on the call's state tells.
const confirmTime = 3500 * time.Millisecond

// routeTimeout bounds finding the way to somebody.
const routeTimeout = 4 * time.Second

func (t *transfer) found(ctx context.Context, r reach, refusal *Refusal, err error, timeout time.Duration) {
	if err == nil && refusal == nil {
		refusal = t.c.twice(r, t.from)
	}
	if err != nil || refusal != nil {
		r.close()
		t.c.transfer = nil
		t.refuse(refusal, err)
		return
	}
	c := t.c
	if r.script != nil {
		t.toScript(ctx, r)
		return
	}
	if timeout <= 0 {
		timeout = transferTimeout
	}
	t.user = r.user
	t.kept.apart, t.from.apart = true, true
	c.tell(ctx, t)
	h := c.newHunt("agent", r, t.kept)
	if r.user == nil {
		h.role = "callee"
	}
	h.unshown, h.by = t.unshown, &t.from.caller
	h.onRing, h.onAnswer, h.onFail = t.ringing, t.answered, t.failed
	t.hunt = h
	h.start(ctx, timeout)
	c.wire()
}

// transferTimeout is how long a transfer rings where nothing is said.
const transferTimeout = 25 * time.Second

// refuse answers that the target cannot be reached; the call is as it was.
func (t *transfer) refuse(refusal *Refusal, err error) {
	status := 503
	switch {
	case err != nil:
		t.reply.fail(err)
	default:
		status = refusal.Status
		t.reply.fail(refusal.problem())
	}
	t.state.Status = "failed"
	if t.refer != nil {
		t.refer.Notify(status, "")
	}
}

// tell writes down how far the transfer has come.
func (c *liveCall) tell(ctx context.Context, t *transfer) {
	s := t.state
	c.step("transfer."+s.Status, t.target, detail{"to": s.To, "mode": s.Mode})
	c.change(ctx, event.CallTransfer{CallID: c.id, Mode: s.Mode, To: s.To, Status: s.Status, TargetLegID: s.TargetLegID,
		FailureReason: s.FailureReason, SIPStatus: s.SIPStatus, At: at(c.sw.Now())})
}

func (t *transfer) ringing(l *leg, e sip.Provisional) {
	if t.refer != nil {
		t.refer.Notify(e.Status, "")
	}
	if t.rings {
		return
	}
	t.rings, t.state.Status = true, "ringing"
	t.state.TargetLegID = &l.id
	t.c.wire()
	t.c.tell(context.Background(), t)
	t.reply.ok()
}

// answered connects the target: a blind transfer is complete, a warm one is a consultation now.
func (t *transfer) answered(ctx context.Context, l *leg, _ media.Description) {
	t.target, t.hunt = l, nil
	t.state.TargetLegID = &l.id
	t.c.supervisorTakesOver(ctx, l.caller.UserID)
	if t.state.Mode == "blind" || t.early || !t.from.up() {
		t.c.complete(ctx, false)
		t.reply.ok()
		return
	}
	t.from.apart = false
	t.state.Status = "consulting"
	t.c.wire()
	t.c.tell(ctx, t)
	t.reply.ok()
}

// failed goes back to how it was, or ends the call, as asked.
func (t *transfer) failed(ctx context.Context, e sip.Failed) {
	t.hunt = nil
	t.over("failed", outcomeOf(e.Status, e.Q850).Reason, e.Status)
	if t.refer != nil {
		t.refer.Notify(e.Status, e.Reason)
	}
	t.c.tell(ctx, t)
	t.reply.ok()
	t.c.afterFailure(ctx, t)
}

// over ends the transfer in its record.
func (t *transfer) over(status, reason string, sipStatus int) {
	now := t.c.sw.Now()
	t.state.Status, t.state.FinishedAt, t.state.FailureReason = status, &now, optional(reason)
	if sipStatus != 0 {
		t.state.SIPStatus = &sipStatus
	}
	t.kept.apart, t.from.apart = false, false
}

// afterFailure does what on_fail says.
func (c *liveCall) afterFailure(ctx context.Context, t *transfer) {
	switch {
	case t.onFail == "hangup":
		c.hangUpAll(call.Outcome{Reason: "transfer", HangupBy: "system"}, normalClearing)
	case t.onFail == "voicemail" && t.user != nil && c.toMailbox(ctx, t):
	case t.from.up():
		c.resume(t.kept)
		c.wire()
		c.change(ctx)
	default:
		c.ringBack(ctx, t)
	}
}

// ringBack fetches the one who transferred and hung up, for the party that nobody took.
func (c *liveCall) ringBack(ctx context.Context, t *transfer) {
	user := t.from.caller
	nobody := func(context.Context, sip.Failed) {
		c.hangUpAll(call.Outcome{Reason: "transfer", HangupBy: "system"}, normalClearing)
	}
	if user.UserID == "" {
		nobody(ctx, sip.Failed{})
		return
	}
	t.kept.apart = true
	t.returning = true
	c.wire()
	c.aside(routeTimeout, func(ctx context.Context) func(context.Context) {
		r, refusal, err := c.sw.reach(ctx, c.caller, "user:"+user.UserID)
		return func(ctx context.Context) {
			if err != nil || refusal != nil {
				r.close()
				nobody(ctx, sip.Failed{})
				return
			}
			h := c.newHunt("agent", r, t.kept)
			h.onAnswer = func(ctx context.Context, l *leg, _ media.Description) {
				t.target, t.returning = l, false
				c.replace(ctx, t)
			}
			h.onFail = nobody
			h.start(ctx, transferTimeout)
		}
	})
}

// giveUp ends a transfer by going back.
func (c *liveCall) giveUp(ctx context.Context, t *transfer, status string) {
	if t.hunt != nil {
		t.hunt.stop()
		t.hunt = nil
	}
	c.hangUp(t.target, sip.Reason{Q850: normalClearing})
	t.target = nil
	t.over(status, "", 0)
	c.resume(t.kept)
	c.wire()
	c.tell(ctx, t)
}

// complete connects the kept side and the target, and lets the one who transferred go, or keeps all three.
func (c *liveCall) complete(ctx context.Context, conference bool) {
	t := c.transfer
	t.over("completed", "", 0)
	if t.refer != nil {
		t.refer.Notify(200, "OK")
	}
	c.transferredTo = t.target.number
	c.tell(ctx, t)
	if conference {
		c.extra = append(c.extra, t.target)
		c.resume(t.kept)
		c.wire()
		c.change(ctx)
		return
	}
	c.replace(ctx, t)
}

// replace puts the target in the place of the one who transferred.
func (c *liveCall) replace(ctx context.Context, t *transfer) {
	from := t.from
	t.kept.apart, t.from.apart = false, false
	switch from {
	case c.a:
		c.a = t.target
	default:
		c.b = t.target
	}
	c.hangUp(from, sip.Reason{Q850: normalClearing})
	c.sides()
	c.wire()
	c.resume(t.kept)
	c.resume(t.target)
	c.agent = c.near().party()
	c.countHold()
	c.change(ctx, c.answeredEvent(true))
}

// resume takes a leg off a hold that the one who held it is not there to take off.
func (c *liveCall) resume(l *leg) {
	if !l.up() || l.heldAPI || l.session.Ours().Direction == media.SendRecv {
		return
	}
	l.whenIdle(func() {
		m := l.session.Ours()
		m.Direction = media.SendRecv
		c.ask(l, m, func(ctx context.Context, _ media.Description, err error) {
			if err != nil {
				c.sw.Log.Warn("leg not taken off hold after a transfer", "call", c.id, "err", err)
				return
			}
			l.apply()
			c.noteHold(ctx, l)
		})
	})
}

// transferGone is a leg that hung up during a transfer; false where it has nothing to do with one.
func (c *liveCall) transferGone(ctx context.Context, l *leg) bool {
	t := c.transfer
	if !t.running() {
		return false
	}
	switch {
	case l == t.target && t.target != nil && t.state.Status == "consulting":
		c.giveUp(ctx, t, "failed")
	case l == t.from && t.state.Status == "consulting":
		c.complete(ctx, false)
	case l == t.from:
		t.early = true
		c.wire()
		c.change(ctx)
	default:
		return false
	}
	return true
}
