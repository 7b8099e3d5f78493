package e2e

import (
	"testing"
	"time"

	"soniq/e2e/rig"
)

// A telephone that insists on encryption would not talk to us otherwise; the other one knows of none.
func TestAnEncryptedPhoneTalksToAPlainOne(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	office := newSite(s)
	low, _ := tone(t, 440)
	high, _ := tone(t, 1000)
	for _, kind := range []string{"srtp-mand", "srtp", "dtls_srtp"} {
		t.Run(kind, func(t *testing.T) {
			o := office.in(t)
			ada, bob := o.AddUser("Ada-"+kind), o.AddUser("Bob-"+kind)
			caller := o.Server.Phone(ada.SIP, rig.PhoneOptions{Say: low, Encrypt: kind})
			callee := o.Server.Phone(bob.SIP, rig.PhoneOptions{Say: high, Auto: true})
			caller.Dial(bob.Extension)
			caller.Listen(3 * time.Second)
			callee.Listen(3 * time.Second)
			caller.Do("hangup", "")
			callee.Wait("CALL_CLOSED", "")
			both := o.audio(o.recording(o.record(ada.Extension).CallID).ID, "").PCM
			hears(t, "the left channel", both[0], 440, 2*time.Second)
			hears(t, "the right channel", both[1], 1000, 2*time.Second)
			hears(t, "Ada", read(t, caller.Close()).PCM[0], 1000, 2*time.Second)
			hears(t, "Bob", read(t, callee.Close()).PCM[0], 440, 2*time.Second)
		})
	}
}
