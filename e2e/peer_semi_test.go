package e2e

import (
	"fmt"
	"slices"
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
	bob.Wait(`Call ` + second + ` .* ended|Call ` + second + ` .* error`)
	erinPhone.Do("accept", "") // it rings as before
	erinPhone.Wait("CALL_ESTABLISHED", "")
	bob.Wait(`Call ` + first + ` with .* ended`)
	o.talks("Erin", erinPhone, adaTone)
	o.adaPhone.Do("hangup", "")
	erinPhone.Wait("CALL_CLOSED", "")
	var seen []string
	for _, r := range o.records(2, "") {
		seen = append(seen, fmt.Sprint(r.To == erin.Extension, " ", r))
	}
	slices.Sort(seen)
	if want := []string{"false internal completed caller_hangup caller 0", "true internal canceled transfer agent 0"}; !slices.Equal(seen, want) {
		t.Errorf("records (of the second call or not): %q, want %q", seen, want)
	}
}
