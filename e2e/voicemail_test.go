package e2e

import (
	"testing"

	"soniq/e2e/rig"
)

func TestATelephoneIsToldOfItsMailbox(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	ada := newSite(s).AddUser("Ada")
	phone := s.Phone(ada.SIP, rig.PhoneOptions{Lamp: true})
	phone.Wait("MWI_NOTIFY", "Voice-Message: 0/0")
}
