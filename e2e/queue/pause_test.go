package queue

import (
	"testing"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// TestPause_DuringWrapUp lets an agent pause while their wrap-up runs: in the queue, and by their presence. They get no call until they
// end the pause, also after the wrap-up.
//
// https://github.com/2600hz/kazoo/pull/1331
func TestPause_DuringWrapUp(t *testing.T) {
	t.Parallel()
	for name, pause := range map[string]func(o *team, on bool){
		"queue": func(o *team, on bool) {
			o.Want(200, "PUT", "/agents/"+o.agents["Ada"].User.ID+"/queues/"+o.queue, map[string]any{"signed_in": true, "paused": on}, nil)
		},
		"presence": func(o *team, on bool) {
			o.SetPresence(o.agents["Ada"].User, map[bool]string{true: "away", false: "available"}[on])
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newTeam(rig.Shared(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--media-timeout", "0"}}), "Ada", "Bob")
			o.Want(200, "PATCH", "/queues/"+o.queue, map[string]any{"wrap_up_seconds": 2}, nil)
			ada, bob := o.agents["Ada"].User, o.agents["Bob"].User
			o.SetPresence(bob, "away")
			first := o.caller.Dial("600").WaitAnswered()
			o.next().Answer()
			o.WaitPresence(ada, "busy")
			first.HangUp()
			o.WaitPresence(ada, "wrap_up")
			pause(o, true)
			waiting := o.caller.Dial("600").WaitAnswered()
			if name == "presence" {
				o.WaitPresence(ada, "away")
			} else {
				o.WaitPresence(ada, "available") // the wrap-up is over
			}
			o.SetPresence(bob, "available")
			r := o.next()
			if r.UserName() != "Bob" {
				t.Fatalf("%s is offered a call", r.UserName())
			}
			o.SetPresence(bob, "away")
			r.WaitStopped()
			pause(o, false)
			if r := o.next(); r.UserName() != "Ada" {
				t.Fatalf("%s is offered a call after the pause", r.UserName())
			}
			waiting.HangUp()
		})
	}
}
