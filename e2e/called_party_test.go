package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// TestACallIsForWhomTheCarrierNames has a carrier put what is no number of ours into the request URI, and the number dialled into
// P-Called-Party-ID.
func TestACallIsForWhomTheCarrierNames(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet, Flags: []string{"--media-timeout", "0"}})
	o, rings := newSite(s), make(chan *ringing, 10)
	ada, bob := o.handset("Ada", rings), o.handset("Bob", rings)
	way := o.carrier(ada.user.ID, nil)
	n := addresses.Add(1)
	dialled := fmt.Sprintf("+1202555%04d", 1000+n)
	o.Want(201, "POST", "/numbers", map[string]any{"number": dialled, "trunk_id": way.trunk, "user_id": bob.user.ID}, nil)
	national := strings.TrimPrefix(dialled, "+1")
	for i, c := range []struct {
		uri, header string
		to          *handset // nil: nobody
	}{
		{"customer-7", "P-Called-Party-ID: <sip:" + dialled + "@carrier.example;user=phone>", bob},
		{"customer-7", "P-Called-Party-ID: sip:" + dialled + "@carrier.example", bob},
		{"customer-7", `p-called-party-id: "Bob <at work>" <tel:` + dialled + ">;x=y", bob},
		{"customer-7", "P-Called-Party-ID: <sip:" + national + ";npdi@carrier.example>", bob},
		{way.number, "P-Called-Party-ID: <sip:" + dialled + "@carrier.example>", ada}, // what is dialled counts, where it is a number
		{"customer-7", "P-Called-Party-ID: <sip:customer-7@carrier.example>", nil},
		{"customer-7", "P-Called-Party-ID: <sip:+12025559999@carrier.example>", nil},
	} {
		call := rig.Script{Scenario: "call", IP: way.ip, From: fmt.Sprintf("+121255501%02d", i), Number: c.uri,
			Headers: []string{c.header}, Talk: 200 * time.Millisecond}
		if c.to == nil {
			call.Scenario, call.Status = "call_refused", 404
			s.Sipp(call).Wait()
			continue
		}
		caller := s.Sipp(call)
		r := nextRinging(t, rings)
		r.answer()
		caller.Wait()
		r.stops()
		want := map[*handset]string{ada: way.number, bob: dialled}[c.to]
		if got := o.record(call.From); r.at != c.to || got.To != want || got.String() != "inbound completed caller_hangup caller 0" {
			t.Errorf("with %s, %s rings; the record is %s to %s, want %s", c.header, r.name(), got, got.To, want)
		}
	}
}
