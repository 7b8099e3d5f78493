package trunk

import (
	"testing"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestCallerID_Normalised(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	for _, c := range []struct {
		name, from string
		headers    []string
		want       string
	}{
		{"a national number", "2125550166", nil, "+12125550166"},
		{"a number without its plus", "12125550167", nil, "+12125550167"},
		{"another country's", "+493012345678", nil, "+493012345678"},
		{"the carrier's word before the caller's", "+12125550168",
			[]string{`P-Asserted-Identity: "Jane Roe" <sip:+12125550169@carrier.example>`}, "+12125550169"},
		{"withheld", "anonymous", nil, "anonymous"},
		{"withheld by the carrier's word", "+12125550170",
			[]string{"P-Asserted-Identity: <sip:+12125550170@carrier.example>", "Privacy: id"}, "anonymous"},
		{"no number", "front.desk", nil, "front.desk"},
	} {
		t.Run(c.name, func(t *testing.T) {
			own := *s
			own.T = t
			company := fixture.NewOrg(&own)
			way := company.AddCarrier(company.AddUser("Ada").ID, nil)
			own.Sipp(rig.Script{Scenario: "call_refused", Status: 480, IP: way.IP, From: c.from, Number: way.Number,
				Headers: c.headers}).Wait()
			if r := company.CDRs(1, "")[0]; r.From != c.want {
				t.Errorf("record is from %q, want %q", r.From, c.want)
			}
		})
	}
}
