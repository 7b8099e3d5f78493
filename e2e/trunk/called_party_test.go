package trunk

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// TestCalledParty_FromPCalledPartyID proves that P-Called-Party-ID selects the called number if the request URI
// contains no number of the organisation.
func TestCalledParty_FromPCalledPartyID(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--media-timeout", "0"}})
	o, rings := fixture.NewOrg(s), make(chan *fixture.IncomingCall, 10)
	ada, bob := o.AddHandset("Ada", rings), o.AddHandset("Bob", rings)
	way := o.AddCarrier(ada.User.ID, nil)
	n := fixture.Addresses.Add(1)
	dialled := fmt.Sprintf("+1202555%04d", 1000+n)
	o.Want(201, "POST", "/numbers", map[string]any{"number": dialled, "trunk_id": way.Trunk, "user_id": bob.User.ID}, nil)
	national := strings.TrimPrefix(dialled, "+1")
	for i, c := range []struct {
		uri, header string
		to          *fixture.Handset // nil: refused with 404
	}{
		{"customer-7", "P-Called-Party-ID: <sip:" + dialled + "@carrier.example;user=phone>", bob},
		{"customer-7", "P-Called-Party-ID: sip:" + dialled + "@carrier.example", bob},
		{"customer-7", `p-called-party-id: "Bob <at work>" <tel:` + dialled + ">;x=y", bob},
		{"customer-7", "P-Called-Party-ID: <sip:" + national + ";npdi@carrier.example>", bob},
		{way.Number, "P-Called-Party-ID: <sip:" + dialled + "@carrier.example>", ada}, // a number in the request URI takes precedence
		{"customer-7", "P-Called-Party-ID: <sip:customer-7@carrier.example>", nil},
		{"customer-7", "P-Called-Party-ID: <sip:+12025559999@carrier.example>", nil},
	} {
		call := rig.Script{Scenario: "call", IP: way.IP, From: fmt.Sprintf("+121255501%02d", i), Number: c.uri,
			Headers: []string{c.header}, Talk: 200 * time.Millisecond}
		if c.to == nil {
			call.Scenario, call.Status = "call_refused", 404
			s.Sipp(call).Wait()
			continue
		}
		caller := s.Sipp(call)
		r := fixture.NextRinging(t, rings)
		r.Answer()
		caller.Wait()
		r.WaitStopped()
		want := map[*fixture.Handset]string{ada: way.Number, bob: dialled}[c.to]
		if got := o.CDR(call.From); r.Handset != c.to || got.To != want || got.String() != "inbound completed caller_hangup caller 0" {
			t.Errorf("with %s, %s rings; the record is %s to %s, want %s", c.header, r.UserName(), got, got.To, want)
		}
	}
}
