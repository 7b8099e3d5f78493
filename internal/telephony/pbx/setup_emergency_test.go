package pbx

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"soniq/internal/protocol/media/clip"
	"soniq/internal/telephony/pbx/inbox"
)

// emergencyCall returns a call that talks to an emergency service.
func emergencyCall(t *testing.T) (c *liveCall, far *leg) {
	t.Helper()
	c, legs := connectedCall("caller", "callee")
	c.sw.cfg.Log, c.inbox, c.waiting = slog.New(slog.DiscardHandler), inbox.New[message](), map[int]commandReply{}
	c.answered = time.Now()
	legs[1].emergency = true
	return c, legs[1]
}

func TestEmergencyCall_NoMaxDuration(t *testing.T) {
	t.Parallel()
	c, far := emergencyCall(t)
	if c.maxDurationReached(context.Background()); c.done {
		t.Error("the longest time of a call ended one for help")
	}
	far.emergency = false
	if c.maxDurationReached(context.Background()); !c.done {
		t.Error("another call was not ended")
	}
}

func TestEmergencyCall_NoPrompts(t *testing.T) {
	t.Parallel()
	c, far := emergencyCall(t)
	far.heldAPI = true
	if c.loopClipFor(far) != nil {
		t.Error("who helps hears music on hold")
	}
	if slices.Contains(c.allowed(), "announce") {
		t.Error("an announcement is allowed")
	}
	clip := clip.New(make([]int16, 800), 8000)
	for _, l := range c.legs { // Play would panic on a stream that is not open
		c.prompt(l, clip, true)
	}
	far.emergency = false
	if c.loopClipFor(far) == nil || !slices.Contains(c.allowed(), "announce") {
		t.Error("in another call nothing may be played either")
	}
}

func TestEmergencyCall_DetectedAfterRestart(t *testing.T) {
	t.Parallel()
	c := &liveCall{callIdentity: callIdentity{policy: Policy{Country: "US"}}}
	for _, x := range []struct {
		l    *leg
		want bool
	}{
		{&leg{legParty: legParty{trunkID: "trk_1", role: "callee", number: "911"}}, true},
		{&leg{legParty: legParty{trunkID: "trk_1", role: "callee", number: "933"}}, true},
		{&leg{legParty: legParty{trunkID: "trk_1", role: "callee", number: "+12125550142"}}, false},
		{&leg{legParty: legParty{trunkID: "trk_1", role: "caller", number: "911"}}, false},
		{&leg{legParty: legParty{role: "agent", number: "911", caller: Caller{UserID: "usr_1"}}}, false},
	} {
		if c.wasEmergency(x.l) != x.want {
			t.Errorf("a %s at %s is taken for one for help, or not", x.l.role, x.l.number)
		}
	}
	if c.preemptFor(&leg{legParty: legParty{emergency: true}}) != nil || c.preemptFor(&leg{}) == nil {
		t.Error("an emergency call may be cut, or another may not")
	}
}

// An emergency call ends the newest call of its organisation, otherwise the newest of the one with most calls, and never
// another emergency call.
func TestEmergencyCall_ChoosesCallThatMakesRoom(t *testing.T) {
	t.Parallel()
	s := &Switch{calls: map[string]*liveCall{}}
	add := func(id, org string, age time.Duration) *liveCall {
		c := &liveCall{sw: s, callIdentity: callIdentity{id: id}}
		c.new.Org, c.started = org, time.Now().Add(-age)
		c.publishOrg()
		s.calls[id] = c
		return c
	}
	own, urgent := add("own", "org_1", time.Hour), add("urgent", "org_1", time.Second)
	urgent.protected.Store(true)
	add("one", "org_2", time.Second)
	add("older", "org_3", time.Hour)
	newer := add("newer", "org_3", time.Minute)
	add("unrouted", "", 0)
	tried := map[*liveCall]bool{}
	for _, want := range []*liveCall{own, newer} {
		got := s.victim("org_1", tried)
		if got != want {
			t.Fatalf("%s makes room, want %s", got.id, want.id)
		}
		tried[got] = true
	}
	for range 2 {
		tried[s.victim("org_1", tried)] = true
	}
	if c := s.victim("org_1", tried); c != nil {
		t.Errorf("%s makes room", c.id)
	}
}
