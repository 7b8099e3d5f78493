package transfer

import (
	"testing"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// A user who is in a call cannot be added to it again, because the phone would ring during that call.
func TestParticipant_NotTwiceInCall(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	path := o.ConnectCall()
	for _, u := range []rig.User{o.Ada, o.Bob} {
		wantAlreadyInCall(o, path+"/monitor", "user_id", map[string]any{"user_id": u.ID})
		wantAlreadyInCall(o, path+"/participants", "to", map[string]any{"to": u.Extension})
	}
	for _, mode := range []string{"blind", "warm"} { // Ada is the transferred party
		wantAlreadyInCall(o, path+"/transfer", "to", map[string]any{"to": o.Ada.Extension, "mode": mode})
	}
	o.HearsOnly("Ada", o.AdaPhone, fixture.BobTone)
	o.HearsOnly("Bob", o.BobPhone, fixture.AdaTone)
	o.Want(201, "POST", path+"/monitor", map[string]any{"user_id": o.Carol.ID}, nil)
	o.CarolPhone.Wait("CALL_ESTABLISHED", "")
	wantAlreadyInCall(o, path+"/participants", "to", map[string]any{"to": o.Carol.Extension})
	o.HearsOnly("Carol, listening,", o.CarolPhone, fixture.AdaTone, fixture.BobTone)
}

// A call can be transferred to another telephone of the same user, or to its supervisor. The supervision then ends.
func TestBlindTransfer_ToSupervisorAndOwnDevice(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	path, monitor := o.SuperviseCall()
	o.Want(200, "POST", path+"/transfer", map[string]any{"to": o.Carol.Extension, "mode": "blind"}, nil)
	o.BobPhone.Wait("CALL_CLOSED", "")
	o.CarolPhone.WaitAll("CALL_ESTABLISHED", "CALL_CLOSED") // the call is established, and the one with which she listened is closed
	o.HearsOnly("Ada", o.AdaPhone, fixture.CarolTone)
	o.Want(409, "PATCH", monitor, map[string]any{"mode": "listen"}, nil)
	o.CarolPhone.Do("transfer", "sip:"+o.Carol.Extension+"@"+o.Server.SIP)
	o.CarolPhone.WaitAll("CALL_ESTABLISHED", "CALL_CLOSED")
	o.HearsOnly("Ada, afterwards,", o.AdaPhone, fixture.CarolTone)
}

// wantAlreadyInCall fails unless a request is refused because the user is in the call.
func wantAlreadyInCall(o *fixture.Office, path, field string, body map[string]any) {
	o.T.Helper()
	var problem struct {
		Errors []struct{ Field, Code string }
	}
	o.Want(422, "POST", path, body, &problem)
	if e := problem.Errors; len(e) != 1 || e[0].Field != field || e[0].Code != "in_call" {
		o.T.Errorf("%s of somebody who is in the call: %+v", path, e)
	}
}
