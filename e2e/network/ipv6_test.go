package network

import (
	"testing"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// Third-party telephones with only an IPv6 address call each other, for signalling and audio.
func TestIPv6_BothWays(t *testing.T) {
	t.Parallel()
	o := &fixture.Office{Org: fixture.NewOrg(rig.Start(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--sip", "[::1]:0"}}))}
	o.Ada, o.Bob, o.Carol = o.AddUser("Ada"), o.AddUser("Bob"), o.AddUser("Carol")
	say, _ := fixture.Tone(t, fixture.BobTone)
	bob := o.Server.Linphone(o.Bob.SIP, rig.LinphoneOptions{Say: say, Auto: true})
	ada := o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{})
	carol := o.Phone(o.Carol, fixture.CarolTone, rig.PhoneOptions{Auto: true, Transport: "tcp"})

	ada.Dial(o.Bob.Extension)
	o.HearsOnly("Ada", ada, fixture.BobTone)
	o.HearsOnly("Bob", bob, fixture.AdaTone)
	ada.Do("hangup", "")
	bob.Wait(`Call \d+ with .* ended`)

	bob.Dial(o.Carol.Extension)
	o.HearsOnly("Bob, who called,", bob, fixture.CarolTone)
	o.HearsOnly("Carol, who was called,", carol, fixture.BobTone)
	bob.Do("terminate")
	carol.Wait("CALL_CLOSED", "")
	for _, r := range o.CDRs(2, "") {
		if r.String() != "internal completed caller_hangup caller 0" {
			t.Errorf("record: %s", r)
		}
	}
}
