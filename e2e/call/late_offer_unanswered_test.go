package call

import (
	"testing"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// TestLateOffer_UnansweredEnds covers a caller without an offer whose ACK has no answer to ours.
func TestLateOffer_UnansweredEnds(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	way := company.AddCarrier(user.ID, nil)
	tone, _ := fixture.Tone(t, 440)
	phone := s.Phone(user.SIP, rig.PhoneOptions{Say: tone, Auto: true})
	s.Sipp(rig.Script{Scenario: "call_unanswered_offer", LateOffer: true, IP: way.IP, From: "+12125550178", Number: way.Number}).Wait()
	phone.Wait("CALL_CLOSED", "")
	if r := company.CDR("+12125550178"); r.EndReason != "carrier_error" {
		t.Errorf("record: %s", r)
	}
}
