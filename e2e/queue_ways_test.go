package e2e

import (
	"testing"
	"time"

	"soniq/e2e/rig"
	"soniq/sip"
)

// stage waits until the one live call is in a stage.
func (o *order) stage(name string) {
	o.T.Helper()
	o.live(func(c map[string]any) bool { return c["stage"] == name })
}

// talks waits until a user is the agent of the one live call.
func (o *order) talks(u rig.User) {
	o.T.Helper()
	o.live(func(c map[string]any) bool { return c["status"] == "in_progress" && c["agent_id"] == u.ID })
}

// forward says where a user's calls go.
func (o *order) forward(u rig.User, kind, to string) {
	o.T.Helper()
	o.Want(200, "PATCH", "/users/"+u.ID, forwards(kind, to), nil)
}

// TestForwardsAndOverflowsLeadToQueuesFlowsAndMailboxes leads callers by the forwards of users, and out of a queue to its mailbox.
func TestForwardsAndOverflowsLeadToQueuesFlowsAndMailboxes(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: quiet, Flags: []string{"--media-timeout", "0"}}, func(t *testing.T, s *rig.Server) {
		o := newOrder(s, "Ada")
		ada, bob := o.agents["Ada"], o.handset("Bob", o.rings)
		dave := o.AddUser("Dave") // has no telephone
		o.forward(bob.user, "always", "queue:"+o.queue)
		o.rungAt(bob.user.Extension, ada)
		o.forward(bob.user, "busy", "flow:"+o.group(ada.user))
		call := o.caller.dial(bob.user.Extension)
		o.next().refuse()
		o.ends(call, o.next(), ada)
		o.forward(dave, "unreachable", "voicemail:"+o.queue)
		call = o.caller.dial(dave.Extension).is()
		o.stage("voicemail")
		call.hangUp()
		o.presence(ada.user, "away")
		o.overflows()
		o.transferred(bob)
		o.handedOver(ada, bob)
	})
}

// group makes a flow that rings a user.
func (o *order) group(u rig.User) string {
	o.T.Helper()
	var f struct{ ID string }
	o.Want(201, "POST", "/flows", map[string]any{"name": "Group", "publish": true,
		"hunt_group": map[string]any{"members": []map[string]any{{"user_id": u.ID}}, "no_answer_to": "hangup"}}, &f)
	return f.ID
}

// rungAt calls a number: a telephone rings, and is answered.
func (o *order) rungAt(number string, at *handset) {
	o.T.Helper()
	o.ends(o.caller.dial(number), o.next(), at)
}

// ends lets a telephone be answered that is to ring, and ends the call.
func (o *order) ends(call *dialled, r *ringing, at *handset) {
	o.T.Helper()
	if r.at != at {
		o.T.Fatalf("%s's telephone rings; want %s's", r.name(), at.user.Name)
	}
	r.answer()
	call.is()
	o.talks(at.user)
	call.hangUp()
	r.stops()
	o.is(at.user, "available")
}

// overflows leads a caller who has waited long enough to the mailbox of the queue.
func (o *order) overflows() {
	o.T.Helper()
	o.Want(200, "PATCH", "/queues/"+o.queue, map[string]any{"overflow": map[string]any{"to": "voicemail:" + o.queue, "after_seconds": 1}}, nil)
	call := o.caller.dial("600").is()
	o.stage("voicemail")
	o.stands(o.queue, "overflowed")
	call.hangUp()
	o.Want(200, "PATCH", "/queues/"+o.queue, map[string]any{"overflow": nil}, nil)
}

// transferred takes a caller who waits out of the queue, by a request.
func (o *order) transferred(to *handset) {
	o.T.Helper()
	o.forward(to.user, "busy", "ext:600")
	call := o.caller.dial("600").is()
	e := o.stands(o.queue, "waiting")
	o.Want(200, "POST", "/calls/"+e.CallID+"/transfer", map[string]any{"to": "ext:" + to.user.Extension}, nil)
	r := o.next()
	r.answer()
	o.talks(to.user)
	rig.Until(o.T, "the caller waits no more", 30*time.Second, func() bool { return o.figures(o.queue).Waiting == 0 })
	for _, x := range o.standing(o.queue) {
		if x.ID == e.ID && x.Status != "exited" {
			o.T.Errorf("the entry of a caller who was transferred: %+v", x)
		}
	}
	call.hangUp()
	r.stops()
}

// TestAPINIsChangedByTelephone has a user set a PIN by keys, and be asked for it the next time.
func TestAPINIsChangedByTelephone(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"}, Flags: []string{"--media-timeout", "0"}})
	o := newSite(s)
	ada := o.handset("Ada", make(chan *ringing, 1))
	call := ada.dial("*97").is()
	call.press("6" + "1234#1234#" + "2580#2580#" + "#") // digits in a row are refused
	call.ends()
	r := o.record("*97")
	if r.String() != "internal canceled callee_hangup system 0" {
		t.Errorf("record of who heard their messages: %s", r)
	}
	of := office{site: o}
	of.told(r.CallID, "mailbox.pin_changed")
	call = ada.dial("*97").is()
	call.press("2580#")
	id := o.live(nil)["id"].(string)
	if e := of.told(id, "mailbox.entered"); e["by"] != "PIN" {
		t.Errorf("entered by %v", e)
	}
	call.hangUp()
	if all := o.records(2, "phone=*97"); all[0].String() != "internal canceled caller_hangup caller 0" {
		t.Errorf("record of who hung up: %s", all[0])
	}
}

// handedOver has a user who speaks with a caller dial the queue, and put the caller in their own place there (RFC 3891).
func (o *order) handedOver(agent, by *handset) {
	o.T.Helper()
	call := o.caller.dial(by.user.Extension)
	r := o.next()
	r.answer()
	call.is()
	o.talks(by.user)
	asking := by.dial("600").is()
	o.stands(o.queue, "waiting")
	if err := r.in.Leg().Refer(o.T.Context(), sip.Transfer{Target: "sip:600@" + by.host, Replaces: asking.leg}, nil); err != nil {
		o.T.Fatalf("hand over: %v", err)
	}
	r.stops()
	asking.ends()
	o.stands(o.queue, "waiting")
	o.presence(agent.user, "available")
	x := o.next()
	x.answer()
	o.talks(agent.user)
	call.hangUp()
	x.stops()
	o.is(agent.user, "available")
}
