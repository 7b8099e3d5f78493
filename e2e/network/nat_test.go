package network

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// A telephone behind NAT signals its address 192.168.77.2, which is unreachable from outside. The router maps it to
// other ports, drops unsolicited packets, and soon drops idle mappings. Calls work in both directions.
func TestNAT_BothWays(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 60*time.Second, "the router forgets the phone before keep-alives are proven")
	const forgets = 5 * time.Second
	home := rig.NewNAT(t, forgets)
	o := &fixture.Office{Org: fixture.NewOrg(rig.Start(t, rig.Options{Env: fixture.NoSpeech,
		Flags: []string{"--sip", home.Outside + ":0", "--nat-keepalive", "2s"}}))}
	o.Ada, o.Bob, o.Carol = o.AddUser("Ada"), o.AddUser("Bob"), o.AddUser("Carol")
	o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{Auto: true, Behind: home})
	o.CarolPhone = o.Phone(o.Carol, fixture.CarolTone, rig.PhoneOptions{Auto: true, Behind: home})
	o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})

	o.ConnectCall()
	fixture.LetCallRun(t, forgets) // no signalling for longer than the router keeps a mapping
	o.BobPhone.Do("hangup", "")
	o.AdaPhone.Wait("CALL_CLOSED", "")

	fixture.LetCallRun(t, forgets+2*time.Second)
	o.BobPhone.Dial(o.Ada.Extension)
	o.HearsOnly("Ada, called at home,", o.AdaPhone, fixture.BobTone)
	o.HearsOnly("Bob, who called there,", o.BobPhone, fixture.AdaTone)
	o.AdaPhone.Do("hangup", "")
	o.BobPhone.Wait("CALL_CLOSED", "")

	o.CarolPhone.Dial(o.Ada.Extension)
	o.HearsOnly("Carol, in the next room,", o.CarolPhone, fixture.AdaTone)
	o.HearsOnly("Ada, in the next room,", o.AdaPhone, fixture.CarolTone)
	o.CarolPhone.Do("hangup", "")
	o.AdaPhone.Wait("CALL_CLOSED", "")
	for _, r := range o.CDRs(3, "") {
		if r.Status != "completed" || r.EndReason == "timeout" || r.EndReason == "media_timeout" {
			t.Errorf("record: %s", r)
		}
	}
}
