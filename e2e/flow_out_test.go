package e2e

import (
	"testing"
	"time"

	"soniq/e2e/rig"
)

// Who is called by request is led into a flow, or a queue, when they answer.
func TestWhoIsCalledIsLed(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: quiet}, func(t *testing.T, s *rig.Server) {
		o := &office{site: newSite(s)}
		o.ada, o.bob = o.AddUser("Ada"), o.AddUser("Bob")
		o.adaPhone = o.phone(o.ada, adaTone, rig.PhoneOptions{Auto: true})
		o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{Auto: true})
		flow := o.flow(node("say", "play", map[string]any{"audio_id": o.sound(greetingTone, 6*time.Second)}, "done", "bye"), node("bye", "hangup", nil))
		queue := o.addQueue(map[string]any{"wrap_up_seconds": 0}, o.ada)

		heard := o.bobPhone.Mark()
		var c struct{ ID string }
		o.Want(201, "POST", "/calls", map[string]any{"to": "ext:" + o.bob.Extension, "flow_id": flow}, &c)
		o.bobPhone.Wait("CALL_ESTABLISHED", "")
		hears(t, "who was called", o.bobPhone.Since(heard, 3*time.Second), greetingTone, 2*time.Second)
		o.bobPhone.Wait("CALL_CLOSED", "")
		if r := o.records(1, "")[0]; r.CallID != c.ID || r.FlowID == nil || *r.FlowID != flow || r.Status != "completed" {
			t.Errorf("record: %s, flow %v", r, r.FlowID)
		}

		o.Want(201, "POST", "/callbacks", map[string]any{"to": "ext:" + o.bob.Extension, "queue_id": queue}, nil)
		o.adaPhone.Wait("CALL_ESTABLISHED", "")
		o.talks("Ada", o.adaPhone, bobTone)
		o.talks("Bob", o.bobPhone, adaTone)
		o.adaPhone.Do("hangup", "")
		o.stands(queue, "completed")
	})
}
