package transfer

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestAttendedTransfer_ByRequest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   func(o *fixture.Office, path string)
	}{
		{"completed", func(o *fixture.Office, path string) {
			o.Want(200, "POST", path+"/transfer/complete", map[string]any{}, nil)
			o.Want(200, "POST", path+"/transfer/complete", map[string]any{}, nil)
			o.WantInvalidState(path, "transfer/cancel")
			o.BobPhone.Wait("CALL_CLOSED", "")
			o.HearsOnly("Ada", o.AdaPhone, fixture.CarolTone)
			o.HearsOnly("Carol", o.CarolPhone, fixture.AdaTone)
		}},
		{"canceled", func(o *fixture.Office, path string) {
			o.Want(200, "POST", path+"/transfer/cancel", map[string]any{}, nil)
			o.Want(200, "POST", path+"/transfer/cancel", map[string]any{}, nil)
			o.WantInvalidState(path, "transfer/complete")
			o.CarolPhone.Wait("CALL_CLOSED", "")
			o.HearsOnly("Ada", o.AdaPhone, fixture.BobTone)
			o.HearsOnly("Bob", o.BobPhone, fixture.AdaTone)
		}},
		{"joined", func(o *fixture.Office, path string) {
			o.Want(200, "POST", path+"/transfer/complete", map[string]any{"mode": "conference"}, nil)
			o.HearsOnly("Ada", o.AdaPhone, fixture.BobTone, fixture.CarolTone)
			o.HearsOnly("Bob", o.BobPhone, fixture.AdaTone, fixture.CarolTone)
			o.HearsOnly("Carol", o.CarolPhone, fixture.AdaTone, fixture.BobTone)
		}},
		{"completed by hanging up", func(o *fixture.Office, path string) {
			o.BobPhone.Do("hangup", "")
			o.HearsOnly("Ada", o.AdaPhone, fixture.CarolTone)
			o.HearsOnly("Carol", o.CarolPhone, fixture.AdaTone)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := fixture.NewOffice(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
			path := o.ConnectCall()
			o.Want(200, "POST", path+"/transfer", map[string]any{"to": o.Carol.Extension, "mode": "warm"}, nil)
			o.CarolPhone.Wait("CALL_ESTABLISHED", "")
			o.LiveCall(func(c map[string]any) bool {
				transfer, _ := c["transfer"].(map[string]any)
				return transfer["status"] == "consulting"
			})
			o.HearsMusic("Ada, waiting,", o.AdaPhone)
			o.HearsOnly("Bob, consulting,", o.BobPhone, fixture.CarolTone)
			o.HearsOnly("Carol, consulted,", o.CarolPhone, fixture.BobTone)
			c.do(o, path)
		})
	}
}

func TestAttendedTransfer_FromLinphone(t *testing.T) {
	t.Parallel()
	o, bob := fixture.NewOfficeWithLinphone(t)
	dave := o.AddUser("Dave") // Dave's audio must be received while the call is held
	say, _ := fixture.Tone(t, fixture.AdaTone)
	davePhone := o.Server.Linphone(dave.SIP, rig.LinphoneOptions{Say: say})
	davePhone.Dial(o.Bob.Extension)
	first := bob.Wait(`Call (\d+) with .* connected`)[1]
	o.HearsOnly("Dave", davePhone, fixture.BobTone)
	id := o.LiveCall(nil)["id"]
	bob.Do("pause")
	second := bob.Dial(o.Carol.Extension)
	o.HearsMusic("Dave, waiting,", davePhone) // not the file that linphonec sends while it holds
	o.HearsOnly("Carol, asked,", o.CarolPhone, fixture.BobTone)
	bob.Do("transfer " + first + " --to-call " + second)
	bob.Wait(`Call ` + first + ` with .* ended`)
	o.HearsOnly("Dave, transferred,", davePhone, fixture.CarolTone)
	o.HearsOnly("Carol, transferred to,", o.CarolPhone, fixture.AdaTone)
	if c := o.LiveCall(nil); c["id"] != id || c["agent_id"] != o.Carol.ID {
		t.Errorf("transferred call: %v", c)
	}
	davePhone.Do("terminate")
	o.CarolPhone.Wait("CALL_CLOSED", "")
	for _, r := range o.CDRs(2, "") {
		want := "internal completed transfer agent 0"
		if r.CallID == id {
			want = "internal completed caller_hangup caller 0"
		}
		if r.String() != want {
			t.Errorf("record of %s: %s; want %s", r.CallID, r, want)
		}
	}
}

func TestAttendedTransfer_WhileRinging(t *testing.T) {
	t.Parallel()
	o, bob := fixture.NewOfficeWithLinphone(t)
	erin := o.AddUser("Erin")
	erinPhone := o.Phone(erin, fixture.CarolTone, rig.PhoneOptions{})
	o.AdaPhone.Dial(o.Bob.Extension)
	first := bob.Wait(`Call (\d+) with .* connected`)[1]
	o.HearsOnly("Ada", o.AdaPhone, fixture.BobTone)
	bob.Do("pause")
	bob.Do("call " + erin.Extension)
	erinPhone.Wait("CALL_INCOMING", "")
	second := bob.Wait(`Call (\d+) to \S+ ringing`)[1]
	bob.Do("transfer " + first + " --to-call " + second)
	bob.Wait(`Call ` + second + ` .* ended|Call ` + second + ` .* error`)
	erinPhone.Do("accept", "") // it rings as before
	erinPhone.Wait("CALL_ESTABLISHED", "")
	bob.Wait(`Call ` + first + ` with .* ended`)
	o.HearsOnly("Erin", erinPhone, fixture.AdaTone)
	o.AdaPhone.Do("hangup", "")
	erinPhone.Wait("CALL_CLOSED", "")
	var seen []string
	for _, r := range o.CDRs(2, "") {
		seen = append(seen, fmt.Sprint(r.To == erin.Extension, " ", r))
	}
	slices.Sort(seen)
	if want := []string{"false internal completed caller_hangup caller 0", "true internal canceled transfer agent 0"}; !slices.Equal(seen, want) {
		t.Errorf("records (of the second call or not): %q, want %q", seen, want)
	}
	if w := wantWork(o, math.MaxInt, erin)[0]; w.Answered != 1 || missedBy(o, erin) != 0 {
		t.Errorf("Erin, who rang for both calls and answered: %+v, missed %d", w, missedBy(o, erin))
	}
}
