package e2e

import (
	"testing"

	"soniq/e2e/rig"
)

func TestAPhoneTransfersToOneWhoStillRings(t *testing.T) {
	t.Parallel()
	o, bob := withLinphone(t)
	erin := o.AddUser("Erin")
	erinPhone := o.phone(erin, carolTone, rig.PhoneOptions{})
	o.adaPhone.Dial(o.bob.Extension)
	first := bob.Wait(`Call (\d+) with .* connected`)[1]
	o.talks("Ada", o.adaPhone, bobTone)
	bob.Do("pause")
	bob.Do("call " + erin.Extension)
	erinPhone.Wait("CALL_INCOMING", "")
	second := bob.Wait(`Call (\d+) to \S+ ringing`)[1]
	bob.Do("transfer " + first + " --to-call " + second)
	erinPhone.Wait("CALL_CLOSED", "")
	erinPhone.Wait("CALL_INCOMING", "")
	erinPhone.Do("accept", "")
	erinPhone.Wait("CALL_ESTABLISHED", "")
	bob.Wait(`Call ` + first + ` with .* ended`)
	o.talks("Erin", erinPhone, adaTone)
	o.adaPhone.Do("hangup", "")
	erinPhone.Wait("CALL_CLOSED", "")
	for _, r := range o.records(2, "") {
		t.Logf("record: %s of %s", r, r.To)
		if asked := r.AnsweredAt == nil; asked != (r.EndReason == "transfer") {
			t.Errorf("record: %+v", r)
		}
	}
}
