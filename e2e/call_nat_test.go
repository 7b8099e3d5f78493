package e2e

import (
	"testing"
	"time"

	"soniq/e2e/rig"
)

// A telephone at home says that it is at 192.168.77.2, which nobody outside can reach; the router chooses other ports than its
// own, lets nobody in who was not asked, and soon forgets who was.
func TestAPhoneBehindARouterCallsAndIsCalled(t *testing.T) {
	t.Parallel()
	const forgets = 5 * time.Second
	home := rig.NewNAT(t, forgets)
	o := &office{site: newSite(rig.Start(t, rig.Options{Env: quiet, Flags: []string{"--sip", home.Outside + ":0", "--nat-keepalive", "2s"}}))}
	o.ada, o.bob, o.carol = o.AddUser("Ada"), o.AddUser("Bob"), o.AddUser("Carol")
	o.adaPhone = o.phone(o.ada, adaTone, rig.PhoneOptions{Auto: true, Behind: home})
	o.carolPhone = o.phone(o.carol, carolTone, rig.PhoneOptions{Auto: true, Behind: home})
	o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{Auto: true})

	o.call()
	lasts(t, forgets) // signalling is quiet longer than the router remembers
	o.bobPhone.Do("hangup", "")
	o.adaPhone.Wait("CALL_CLOSED", "")

	lasts(t, forgets+2*time.Second)
	o.bobPhone.Dial(o.ada.Extension)
	o.talks("Ada, called at home,", o.adaPhone, bobTone)
	o.talks("Bob, who called there,", o.bobPhone, adaTone)
	o.adaPhone.Do("hangup", "")
	o.bobPhone.Wait("CALL_CLOSED", "")

	o.carolPhone.Dial(o.ada.Extension)
	o.talks("Carol, in the next room,", o.carolPhone, adaTone)
	o.talks("Ada, in the next room,", o.adaPhone, carolTone)
	o.carolPhone.Do("hangup", "")
	o.adaPhone.Wait("CALL_CLOSED", "")
	for _, r := range o.records(3, "") {
		if r.Status != "completed" || r.EndReason == "timeout" || r.EndReason == "media_timeout" {
			t.Errorf("record: %s", r)
		}
	}
}
