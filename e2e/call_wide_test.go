package e2e

import (
	"testing"

	"soniq/e2e/rig"
)

// A linphonec that speaks Opus only and a baresip that speaks G.711 only hear each other, whoever calls.
func TestLinphoneWithOpusTalksToAPhoneWithoutIt(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	o := &office{site: newSite(s)}
	o.ada, o.bob = o.AddUser("Ada"), o.AddUser("Bob")
	o.adaPhone = o.phone(o.ada, adaTone, rig.PhoneOptions{Auto: true, Codecs: "PCMU/8000"})
	say, _ := tone(t, bobTone)
	bob := s.Linphone(o.bob.SIP, rig.LinphoneOptions{Say: say, Auto: true, Wide: true})

	bob.Dial(o.ada.Extension)
	o.talks("Ada, who was called,", o.adaPhone, bobTone)
	o.talks("Bob, who called,", bob, adaTone)
	o.speak(map[string]string{o.ada.ID: "PCMU", o.bob.ID: "OPUS"})
	bob.Do("terminate")
	o.adaPhone.Wait("CALL_CLOSED", "")

	o.adaPhone.Dial(o.bob.Extension)
	o.talks("Ada, who called,", o.adaPhone, bobTone)
	o.talks("Bob, who was called,", bob, adaTone)
	o.speak(map[string]string{o.ada.ID: "PCMU", o.bob.ID: "OPUS"})
	o.adaPhone.Do("hangup", "")
	bob.Wait(`Call \d+ with .* ended`)
}

// speak fails unless the legs of the call in progress have these codecs, by user.
func (o *office) speak(codecs map[string]string) {
	o.T.Helper()
	var c struct {
		Legs []struct {
			User  string `json:"user_id"`
			Codec string
		}
	}
	id := o.live(func(c map[string]any) bool { return c["status"] == "in_progress" })["id"].(string)
	o.Want(200, "GET", "/calls/"+id+"?expand=legs", nil, &c)
	for _, l := range c.Legs {
		if l.Codec != codecs[l.User] {
			o.T.Errorf("the leg of %s has the codec %q; want %q", l.User, l.Codec, codecs[l.User])
		}
	}
	if len(c.Legs) != len(codecs) {
		o.T.Errorf("legs: %+v", c.Legs)
	}
}
