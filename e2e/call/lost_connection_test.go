package call

import (
	"slices"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// TestRinging_TCPPhoneLosesItsConnection proves that a phone that loses its TCP connection while it rings rings again as soon as it has
// registered again, and takes the call. If the caller has hung up meanwhile, it stops ringing.
//
// https://github.com/NethServer/dev/issues/7753
func TestRinging_TCPPhoneLosesItsConnection(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 60*time.Second, "the phone decides when it registers again")
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	o := &fixture.Office{Org: fixture.NewOrg(s)}
	o.Ada, o.Bob = o.AddUser("Ada"), o.AddUser("Bob")
	o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{})
	relay := s.TCPRelay(t)
	say, _ := fixture.Tone(t, fixture.BobTone)
	bob := s.Linphone(o.Bob.SIP, rig.LinphoneOptions{Say: say, Relay: relay})
	o.AdaPhone.Do("dial", o.Bob.Extension)
	o.AdaPhone.Wait("CALL_RINGING", "")
	call := "/calls/" + o.LiveCall(nil)["id"].(string)
	relay.Cut()
	rig.Until(t, "Bob's telephone to ring again", 0, func() bool {
		steps := o.TimelineSteps(call)
		lost := slices.Index(steps, "leg.reconnect_awaited")
		return lost >= 0 && slices.Contains(steps[lost:], "leg.ringing")
	})
	bob.Wait(`Call \d+ with .* ended`) // the former ringing
	bob.Do("answer")
	o.AdaPhone.Wait("CALL_ESTABLISHED", "")
	fixture.Hears(t, "Ada", o.AdaPhone.Since(o.AdaPhone.Mark(), 2*time.Second), fixture.BobTone, time.Second)
	fixture.Hears(t, "Bob", bob.Since(bob.Mark(), 2*time.Second), fixture.AdaTone, time.Second)
	o.AdaPhone.Do("hangup", "")
	bob.Wait(`Call \d+ with .* ended`)

	o.AdaPhone.Do("dial", o.Bob.Extension)
	o.AdaPhone.Wait("CALL_RINGING", "")
	release := relay.Hold() // Bob's telephone registers again only later
	relay.Cut()
	o.AdaPhone.Do("hangup", "")
	o.AdaPhone.Wait("CALL_CLOSED", "")
	release()
	bob.Wait(`Call \d+ with .* (ended|error)`) // or it would ring for half a minute; error: by its lost connection
}
