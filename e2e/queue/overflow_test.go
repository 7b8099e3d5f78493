package queue

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
	"soniq/internal/protocol/sip"
)

// TestOverflow_EveryReason routes callers to the overflow of their queues, for every reason.
func TestOverflow_EveryReason(t *testing.T) {
	t.Parallel()
	o := &fixture.Office{Org: fixture.NewOrg(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))}
	o.Ada, o.Bob = o.AddUser("Ada"), o.AddUser("Bob")
	o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{})
	o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
	o.SetPresence(o.Ada, "away")
	to := func(dest string, after any) map[string]any {
		return map[string]any{"to": dest, "after_seconds": after}
	}
	for i, c := range []struct {
		settings map[string]any
		status   string // of the queue entry; "" if the caller could not enter
	}{
		{map[string]any{"overflow": to("ext:"+o.Bob.Extension, 2)}, "overflowed"},
		{map[string]any{"overflow": to("user:"+o.Bob.ID, nil), "max_wait_seconds": 5}, "timed_out"},
		{map[string]any{"overflow": to("user:"+o.Bob.ID, nil), "leave_when_no_agents": true}, "overflowed"},
		{map[string]any{"overflow": to("user:"+o.Bob.ID, nil), "join_when_no_agents": false}, ""},
		{map[string]any{"overflow": to("user:"+o.Bob.ID, nil), "hours": map[string]any{"weekly": map[string]any{}}}, ""},
	} {
		from := "+1212555012" + string(rune('0'+i))
		id := o.AddQueue(c.settings, o.Ada)
		v := o.CallIn(addQueueCarrier(o.Org, id), from)
		v.WaitTone(0, fixture.BobTone)
		v.Line.HangUp()
		o.BobPhone.Wait("CALL_CLOSED", "")
		if c.status != "" {
			o.WaitQueueEntry(id, c.status)
		} else if all := o.QueueEntries(id); len(all) != 0 {
			t.Errorf("entered: %+v", all)
		}
		if r := queueRecordOf(o.Org, from); r.Status != "completed" {
			t.Errorf("%v: record %+v", c.settings, r)
		}
	}
	last := o.AddQueue(map[string]any{"name": "Last", "music_audio_id": o.UploadTone(2300, 5*time.Second)}, o.Ada)
	first := o.AddQueue(map[string]any{"max_callers": 1, "music_audio_id": o.UploadTone(2000, 5*time.Second), "overflow": to("queue:"+last, nil)}, o.Ada)
	way := addQueueCarrier(o.Org, first)
	one := o.CallIn(way, "+12125550131")
	one.WaitTone(0, 2000)
	two := o.CallIn(way, "+12125550132")
	two.WaitTone(0, 2300)
	two.Line.HangUp()
	one.Line.HangUp()
	if r := queueRecordOf(o.Org, "+12125550132"); r.Queue.ID != last || r.missed() != "abandoned_in_queue" {
		t.Errorf("record %+v", r)
	}
}

// waitStage waits until the one live call is in a stage.
func (o *team) waitStage(name string) {
	o.T.Helper()
	o.LiveCall(func(c map[string]any) bool { return c["stage"] == name })
}

// waitAgent waits until a user is the agent of the one live call.
func (o *team) waitAgent(u rig.User) {
	o.T.Helper()
	o.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" && c["agent_id"] == u.ID })
}

// setForwarding sets the forwarding of a user.
func (o *team) setForwarding(u rig.User, kind, to string) {
	o.T.Helper()
	o.Want(200, "PATCH", "/users/"+u.ID, fixture.Forwarding(kind, to), nil)
}

// TestForwarding_QueueFlowAndVoicemail routes callers by the forwarding of users, and out of a queue to its mailbox.
func TestForwarding_QueueFlowAndVoicemail(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--media-timeout", "0"}}, func(t *testing.T, s *rig.Server) {
		o := newTeam(s, "Ada")
		ada, bob := o.agents["Ada"], o.AddHandset("Bob", o.rings)
		dave := o.AddUser("Dave") // has no telephone
		o.setForwarding(bob.User, "always", "queue:"+o.queue)
		o.ringAt(bob.User.Extension, ada)
		o.setForwarding(bob.User, "busy", "flow:"+o.addGroup(ada.User))
		call := o.caller.Dial(bob.User.Extension)
		o.next().Refuse()
		o.answerAndEnd(call, o.next(), ada)
		o.setForwarding(dave, "unreachable", "voicemail:"+o.queue)
		call = o.caller.Dial(dave.Extension).WaitAnswered()
		o.waitStage("voicemail")
		call.HangUp()
		o.SetPresence(ada.User, "away")
		o.wantOverflow()
		o.transferWaiting(bob)
		o.replaceWaiting(ada, bob)
	})
}

// addGroup makes a flow that rings a user.
func (o *team) addGroup(u rig.User) string {
	o.T.Helper()
	var f struct{ ID string }
	o.Want(201, "POST", "/flows", map[string]any{"name": "Group", "publish": true,
		"hunt_group": map[string]any{"members": []map[string]any{{"user_id": u.ID}}, "no_answer_to": "hangup"}}, &f)
	return f.ID
}

// ringAt calls a number, answers the telephone that rings, and ends the call.
func (o *team) ringAt(number string, at *fixture.Handset) {
	o.T.Helper()
	o.answerAndEnd(o.caller.Dial(number), o.next(), at)
}

// answerAndEnd answers a telephone that must be this one, and ends the call.
func (o *team) answerAndEnd(call *fixture.OutgoingCall, r *fixture.IncomingCall, at *fixture.Handset) {
	o.T.Helper()
	if r.Handset != at {
		o.T.Fatalf("%s's telephone rings; want %s's", r.UserName(), at.User.Name)
	}
	r.Answer()
	call.WaitAnswered()
	o.waitAgent(at.User)
	call.HangUp()
	r.WaitStopped()
	o.WaitPresence(at.User, "available")
}

// wantOverflow routes a caller who has waited for the maximum time to the mailbox of the queue.
func (o *team) wantOverflow() {
	o.T.Helper()
	o.Want(200, "PATCH", "/queues/"+o.queue, map[string]any{"overflow": map[string]any{"to": "voicemail:" + o.queue, "after_seconds": 1}}, nil)
	call := o.caller.Dial("600").WaitAnswered()
	o.waitStage("voicemail")
	o.WaitQueueEntry(o.queue, "overflowed")
	call.HangUp()
	o.Want(200, "PATCH", "/queues/"+o.queue, map[string]any{"overflow": nil}, nil)
}

// transferWaiting transfers a waiting caller out of the queue by request.
func (o *team) transferWaiting(to *fixture.Handset) {
	o.T.Helper()
	o.setForwarding(to.User, "busy", "ext:600")
	call := o.caller.Dial("600").WaitAnswered()
	e := o.WaitQueueEntry(o.queue, "waiting")
	o.Want(200, "POST", "/calls/"+e.CallID+"/transfer", map[string]any{"to": "ext:" + to.User.Extension}, nil)
	r := o.next()
	r.Answer()
	o.waitAgent(to.User)
	rig.Until(o.T, "the caller waits no more", 30*time.Second, func() bool { return figuresOf(o.Org, o.queue).Waiting == 0 })
	for _, x := range o.QueueEntries(o.queue) {
		if x.ID == e.ID && x.Status != "exited" {
			o.T.Errorf("the entry of a caller who was transferred: %+v", x)
		}
	}
	call.HangUp()
	r.WaitStopped()
}

// replaceWaiting makes a user who talks to a caller dial the queue, and transfer the caller to the user's own place
// there (Replaces, RFC 3891).
func (o *team) replaceWaiting(agent, by *fixture.Handset) {
	o.T.Helper()
	call := o.caller.Dial(by.User.Extension)
	r := o.next()
	r.Answer()
	call.WaitAnswered()
	o.waitAgent(by.User)
	asking := by.Dial("600").WaitAnswered()
	o.WaitQueueEntry(o.queue, "waiting")
	if err := r.Inbound.Leg().Refer(o.T.Context(), sip.TransferRequest{Target: "sip:600@" + by.Host, Replaces: asking.Leg},
		nil); err != nil {
		o.T.Fatalf("hand over: %v", err)
	}
	r.WaitStopped()
	asking.WaitEnd()
	o.WaitQueueEntry(o.queue, "waiting")
	o.SetPresence(agent.User, "available")
	x := o.next()
	x.Answer()
	o.waitAgent(agent.User)
	call.HangUp()
	x.WaitStopped()
	o.WaitPresence(agent.User, "available")
}
