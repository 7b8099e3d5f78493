package pbx

import (
	"context"
	"time"

	"soniq/internal/platform/op"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx/cause"
	"soniq/internal/telephony/pbx/commandwait"
)

// callCommands has the commands that a call got.
type callCommands struct {
	commands int
	waiting  map[int]commandReply // unconfirmed commands
}

// commandReply answers a command, once. The zero value discards the answer.
type commandReply struct {
	to     func(call.Result, error)
	waiter *commandwait.Waiter // nil if the command has no waiter
}

func (r commandReply) ok()                  { r.result(call.Result{}) }
func (r commandReply) result(x call.Result) { r.send(x, nil) }
func (r commandReply) fail(err error)       { r.send(call.Result{}, err) }

func (r commandReply) send(x call.Result, err error) {
	if r.to != nil {
		r.to(x, err)
	}
}

// state refuses the command because the state of the call does not allow it.
func (r commandReply) state(c *liveCall, why string) {
	r.fail(op.State(why, string(c.status()), c.allowed()...))
}

// Do carries out a command on a call in progress. It returns after the effect is confirmed and written. With an error
// the call is unchanged.
func (s *Switch) Do(ctx context.Context, org, id string, x call.Command) (call.Result, error) {
	c := s.find(org, id)
	if c == nil {
		return call.Result{}, op.NotFound("call in progress")
	}
	a := commandwait.New(ctx)
	done := replyTo(a)
	over := func() { done.fail(op.State("the call has ended", "completed", call.ActionsAfterEnd...)) }
	if _, end := x.(call.End); end { // the call has ended already, as requested
		over = func() { go s.awaitEnd(ctx, id, done) }
	}
	if !c.inbox.Push(message{run: func(ctx context.Context) { c.do(ctx, x, done) }, ifEnded: over}) {
		over()
	}
	return a.Await()
}

// awaitEnd polls until an ended call is written, then confirms the command. The switch has no notification for this.
func (s *Switch) awaitEnd(ctx context.Context, id string, done commandReply) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for s.HasCall(id) {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	done.ok()
}

// do runs one command. If the call ends before the command is confirmed, finish answers it with an error.
func (c *liveCall) do(ctx context.Context, x call.Command, answer commandReply) {
	c.commands++
	n := c.commands
	c.waiting[n] = answer
	c.dispatch(ctx, x, commandReply{waiter: answer.waiter, to: func(r call.Result, err error) {
		delete(c.waiting, n)
		answer.send(r, err)
	}})
}

// dispatch calls the handler of a command by its type.
func (c *liveCall) dispatch(ctx context.Context, x call.Command, done commandReply) {
	switch x := x.(type) {
	case call.End:
		c.endNow(x, done)
	case call.Hold:
		c.holdFar(ctx, x, done)
	case call.Unhold:
		c.unholdFar(ctx, done)
	case call.Transfer:
		c.startTransfer(x, done)
	case call.CompleteTransfer:
		c.completeByCommand(ctx, x, done)
	case call.CancelTransfer:
		c.cancelByCommand(ctx, done)
	case call.DTMF:
		c.sendDTMF(ctx, x, done)
	case call.Mute:
		c.setMuted(ctx, x, done)
	case call.StartRecording:
		c.recordByCommand(ctx, x, done)
	case call.StopRecording:
		c.stopRecording(ctx, done)
	case call.PauseRecording:
		c.pauseRecording(ctx, x, done)
	case call.ResumeRecording:
		c.resumeRecording(ctx, done)
	case call.Announce:
		c.announce(ctx, x, done)
	case call.StartMonitor:
		c.startMonitor(ctx, x, done)
	case call.UpdateMonitor:
		c.updateMonitor(ctx, x, done)
	case call.EndMonitor:
		c.endMonitor(ctx, x, done)
	case call.AddParticipant:
		c.addParticipant(ctx, x, done)
	case call.RemoveParticipant:
		c.removeParticipant(ctx, x, done)
	case call.Accept:
		c.accept(ctx, x, done)
	default:
		done.fail(op.Fail("not_enabled", "the switch does not know this command"))
	}
}

// connectedNow reports whether two sides are connected.
func (c *liveCall) connectedNow() bool { return c.a.up() && c.b.up() && !c.answered.IsZero() }

// allowed returns the actions that are possible in the current state of the call.
func (c *liveCall) allowed() []string {
	all := []string{"end", "note", "tag"}
	if !c.connectedNow() {
		if c.answered.IsZero() {
			all = append(all, "answer")
		}
		if c.scripted != nil {
			all = append(all, "transfer")
		}
		return all
	}
	all = append(all, "dtmf", "mute", "unmute")
	if !c.isEmergency() {
		all = append(all, "announce")
	}
	all = append(all, "monitor")
	switch {
	case c.transfer.running():
		all = append(all, c.transfer.allowed()...)
	case !c.heldSince.IsZero():
		all = append(all, "unhold", "transfer", "participants")
	default:
		all = append(all, "hold", "transfer", "participants")
	}
	return append(all, c.recordingActions()...)
}

func (c *liveCall) recordingActions() []string {
	switch r := c.recording; {
	case r == nil:
		return []string{"recording/start"}
	case r.paused:
		return []string{"recording/resume", "recording/stop"}
	}
	return []string{"recording/pause", "recording/stop"}
}

// endNow hangs up the call, or cancels the ringing phones.
func (c *liveCall) endNow(x call.End, done commandReply) {
	c.addEntry("api.end", nil, detail{"reason": x.Reason})
	o := call.Outcome{Reason: "api", HangupBy: "api"}
	if c.answered.IsZero() {
		o.SIPStatus = 487
	}
	c.onEnd = append(c.onEnd, done.ok)
	c.hangUpAll(o, cause.NormalClearing)
}

// accept answers a ringing phone remotely. It rings the phone again with a request to answer by itself, which desk
// phones and softphones do if configured. The command is confirmed by the phone's answer.
func (c *liveCall) accept(ctx context.Context, x call.Accept, done commandReply) {
	for _, h := range c.dials {
		for _, l := range h.legs {
			if l.phone != nil && (x.DeviceID == "" || l.phone.DeviceID == x.DeviceID) {
				h.ringAgain(ctx, l, done)
				return
			}
		}
	}
	done.state(c, "no phone of the call is ringing")
}

// ringAgain replaces a ringing leg by a new one that asks for automatic answer.
func (h *forkedDial) ringAgain(ctx context.Context, l *leg, done commandReply) {
	phone := l.phone
	h.removeLeg(l)
	l.dial = nil
	l.sip.Bye(sip.Reason{Q850: cause.NormalClearing})
	h.c.markLegEnded(l, "canceled", 0)
	h.header = append(h.header, autoAnswer...)
	again := h.ringPhone(ctx, phone)
	again.onAnswer = append(again.onAnswer, done.ok)
	h.c.after(pickUpTime, func(context.Context) {
		done.fail(op.Fail("action_timeout", "the telephone rings anew and has not picked up by itself; allow it to (Call-Info with "+
			"answer-after, Alert-Info with auto answer), or pick it up by hand"))
	})
}

// pickUpTime is the time in which a phone has to answer by itself. The phone continues to ring afterwards.
const pickUpTime = 4500 * time.Millisecond

// replyTo returns a reply that answers a waiter.
func replyTo(a *commandwait.Waiter) commandReply { return commandReply{waiter: a, to: a.Send} }

// decide reports whether the command may take effect now. It returns false if the waiter already returned a timeout.
func (r commandReply) decide() bool { return r.waiter == nil || r.waiter.Decide() }

// expired returns a channel that is closed when the waiter's context ends. It is nil if the command has no waiter.
func (r commandReply) expired() <-chan struct{} {
	if r.waiter == nil {
		return nil
	}
	return r.waiter.Expired()
}

// isAwaited reports whether the waiter still waits. It is true if the command has no waiter.
func (r commandReply) isAwaited() bool {
	select {
	case <-r.expired():
		return false
	default:
		return true
	}
}
