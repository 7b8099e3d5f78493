package e2e

import (
	"testing"

	"soniq/e2e/rig"
)

// Nobody is fetched to a call that they are in: their telephone would ring while they speak on it.
func TestNobodyIsInACallTwice(t *testing.T) {
	t.Parallel()
	o := newOffice(rig.Start(t, rig.Options{Env: quiet}))
	path := o.call()
	for _, u := range []rig.User{o.ada, o.bob} {
		o.inCall(path+"/monitor", "user_id", map[string]any{"user_id": u.ID})
		o.inCall(path+"/participants", "to", map[string]any{"to": u.Extension})
	}
	for _, mode := range []string{"blind", "warm"} { // Ada is the far side
		o.inCall(path+"/transfer", "to", map[string]any{"to": o.ada.Extension, "mode": mode})
	}
	o.talks("Ada", o.adaPhone, bobTone)
	o.talks("Bob", o.bobPhone, adaTone)
	o.Want(201, "POST", path+"/monitor", map[string]any{"user_id": o.carol.ID}, nil)
	o.carolPhone.Wait("CALL_ESTABLISHED", "")
	o.inCall(path+"/participants", "to", map[string]any{"to": o.carol.Extension})
	o.talks("Carol, listening,", o.carolPhone, adaTone, bobTone)
}

// A call may be moved to another telephone of who speaks, or to who supervises it: that is no supervisor any more.
func TestACallGoesToItsSupervisorAndToAnotherTelephone(t *testing.T) {
	t.Parallel()
	o := newOffice(rig.Start(t, rig.Options{Env: quiet}))
	path, monitor := o.supervised()
	o.Want(200, "POST", path+"/transfer", map[string]any{"to": o.carol.Extension, "mode": "blind"}, nil)
	o.bobPhone.Wait("CALL_CLOSED", "")
	o.carolPhone.Wait("CALL_ESTABLISHED", "")
	o.carolPhone.Wait("CALL_CLOSED", "")
	o.talks("Ada", o.adaPhone, carolTone)
	o.Want(409, "PATCH", monitor, map[string]any{"mode": "listen"}, nil)
	o.carolPhone.Do("transfer", "sip:"+o.carol.Extension+"@"+o.Server.SIP)
	o.carolPhone.Wait("CALL_ESTABLISHED", "")
	o.talks("Ada, afterwards,", o.adaPhone, carolTone)
}

// inCall fails unless a request is refused because whom it names is in the call.
func (o *office) inCall(path, field string, body map[string]any) {
	o.T.Helper()
	var problem struct {
		Errors []struct{ Field, Code string }
	}
	o.Want(422, "POST", path, body, &problem)
	if e := problem.Errors; len(e) != 1 || e[0].Field != field || e[0].Code != "in_call" {
		o.T.Errorf("%s of somebody who is in the call: %+v", path, e)
	}
}
