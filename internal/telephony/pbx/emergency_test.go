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
func helped(t *testing.T) (c *liveCall, far *leg) {
	t.Helper()
	c, legs := talkers("caller", "callee")
	c.sw.Log, c.inbox, c.waiting = slog.New(slog.DiscardHandler), newInbox(), map[int]reply{}
	c.answered = time.Now()
	legs[1].help = true
	return c, legs[1]
}

func TestNoLimitEndsAnEmergencyCall(t *testing.T) {
	t.Parallel()
	c, far := helped(t)
	if c.timeUp(context.Background()); c.done {
		t.Error("the longest time of a call ended one for help")
	}
	far.help = false
	if c.timeUp(context.Background()); !c.done {
		t.Error("another call was not ended")
	}
}

func TestNothingIsPlayedIntoAnEmergencyCall(t *testing.T) {
	t.Parallel()
	c, far := helped(t)
	far.heldAPI = true
	if c.clipFor(far) != nil {
		t.Error("who helps hears music on hold")
	}
	if slices.Contains(c.allowed(), "announce") {
		t.Error("an announcement is allowed")
	}
	clip := media.NewClip(make([]int16, 800), 8000)
	for _, l := range c.legs { // Play would panic on a stream that is not open
		c.prompt(l, clip, true)
	}
	far.help = false
	if c.clipFor(far) == nil || !slices.Contains(c.allowed(), "announce") {
		t.Error("in another call nothing may be played either")
	}
}

func TestAnEmergencyCallIsOneAfterARestart(t *testing.T) {
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
		if c.wasForHelp(x.l) != x.want {
			t.Errorf("a %s at %s is taken for one for help, or not", x.l.role, x.l.number)
		}
	}
	if c.cutOf(&leg{help: true}) != nil || c.cutOf(&leg{}) == nil {
		t.Error("an emergency call may be cut, or another may not")
	}
}

func TestTheDoorIsWiderForWhoMayCallForHelp(t *testing.T) {
	t.Parallel()
	var d door
	if d.enterUrgent() {
		t.Error("a call was let in before the door was open")
	}
	d.open.Store(true)
	for d.enter() {
	}
	if !d.enterUrgent() {
		t.Error("what may be an emergency call was turned away")
	}
	for d.enterUrgent() {
		if d.inside.Load() > 2*maxSetUps {
			t.Fatal("the door has no limit")
		}
	}
}
