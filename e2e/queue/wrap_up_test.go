package queue

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// TestWrapUp_AfterTransfer lets an agent transfer a caller to a colleague while the next caller waits. The caller's conversation goes on
// with the colleague. The agent's own ends with the transfer, and the next caller is offered after the wrap-up, not before.
//
// https://github.com/asterisk/asterisk/issues/1006
func TestWrapUp_AfterTransfer(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--media-timeout", "0"}}, func(t *testing.T, s *rig.Server) {
		const wrapUp = 2 * time.Second
		o := newTeam(s, "Ada")
		o.Want(200, "PATCH", "/queues/"+o.queue, map[string]any{"wrap_up_seconds": wrapUp.Seconds()}, nil)
		colleague := o.AddHandset("Eve", o.rings)
		for range 5 {
			o.waitIdle()
			first := o.caller.Dial("600").WaitAnswered()
			o.next().Answer()
			o.WaitPresence(o.agents["Ada"].User, "busy")
			o.waitNoneWaiting()
			id := o.LiveCall(func(c map[string]any) bool { return c["agent_id"] == o.agents["Ada"].User.ID })["id"].(string)
			waiting := o.caller.Dial("600").WaitAnswered()
			o.Want(200, "POST", "/calls/"+id+"/transfer", map[string]any{"to": "ext:" + colleague.User.Extension}, nil)
			r := o.next()
			if r.UserName() != "Eve" {
				t.Fatalf("%s is rung, want the target of the transfer", r.UserName())
			}
			r.Answer()
			o.WaitPresence(o.agents["Ada"].User, "wrap_up")
			ended := time.Now()
			next := o.next()
			if after := time.Since(ended); next.UserName() != "Ada" || after < wrapUp/2 {
				t.Fatalf("%s is offered the next caller %s after the transfer; the wrap-up takes %s", next.UserName(), after, wrapUp)
			}
			next.Answer()
			o.WaitPresence(o.agents["Ada"].User, "busy")
			waiting.HangUp()
			first.HangUp()
			r.WaitStopped()
		}
	})
}
