package pbx

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"soniq/internal/protocol/media"
)

// emergencyCall returns a call that talks to an emergency service.
func emergencyCall(t *testing.T) (c *liveCall, far *leg) {
	t.Helper()
	c, legs := connectedCall("caller", "callee")
	c.sw.Log, c.inbox, c.waiting = slog.New(slog.DiscardHandler), newInbox(), map[int]commandReply{}
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
	clip := media.NewClip(make([]int16, 800), 8000)
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
	c := &liveCall{policy: Policy{Country: "US"}}
	for _, x := range []struct {
		l    *leg
		want bool
	}{
		{&leg{trunkID: "trk_1", role: "callee", number: "911"}, true},
		{&leg{trunkID: "trk_1", role: "callee", number: "933"}, true},
		{&leg{trunkID: "trk_1", role: "callee", number: "+12125550142"}, false},
		{&leg{trunkID: "trk_1", role: "caller", number: "911"}, false},
		{&leg{role: "agent", number: "911", caller: Caller{UserID: "usr_1"}}, false},
	} {
		if c.wasEmergency(x.l) != x.want {
			t.Errorf("a %s at %s is taken for one for help, or not", x.l.role, x.l.number)
		}
	}
	if c.preemptFor(&leg{emergency: true}) != nil || c.preemptFor(&leg{}) == nil {
		t.Error("an emergency call may be cut, or another may not")
	}
}

func TestAdmission_EmergencyHasHigherLimit(t *testing.T) {
	t.Parallel()
	var d admission
	if d.admitUrgent() {
		t.Error("a call was let in before the door was open")
	}
	d.open.Store(true)
	for d.admit() {
	}
	if !d.admitUrgent() {
		t.Error("what may be an emergency call was turned away")
	}
	for d.admitUrgent() {
		if d.inProgress.Load() > 2*maxSetups {
			t.Fatal("the door has no limit")
		}
	}
}
