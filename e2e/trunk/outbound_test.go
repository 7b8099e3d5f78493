package trunk

import (
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestOutbound_E164AndCallerID(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	for _, c := range []struct{ mode, field string }{
		{"pai", "P-Asserted-Identity"}, {"rpid", "Remote-Party-ID"}, {"from", "From"},
	} {
		t.Run(c.mode, func(t *testing.T) {
			own := *s
			own.T = t
			company := fixture.NewOrg(&own)
			user := company.AddUser("Ada")
			way := company.AddCarrier(user.ID, map[string]any{"caller_id_mode": c.mode, "from_domain": "us.example"})
			company.Want(200, "PATCH", "/numbers/"+company.NumberID(way), map[string]any{"caller_id_name": "Harbor Dental"}, nil)
			carrier := own.Sipp(rig.Script{Scenario: "answer", IP: way.IP, Port: way.Port})
			own.Sipp(rig.Script{Scenario: "call", Login: &user.SIP, Number: "2125550142", Talk: 500 * time.Millisecond}).Wait()
			carrier.Wait()
			invite := carrier.Received("INVITE ", 0)
			if want := "INVITE sip:+12125550142@"; !strings.HasPrefix(invite, want) {
				t.Errorf("the carrier got %s", fixture.StartLine(invite))
			}
			if shown := rig.Field(invite, c.field); !strings.Contains(shown, way.Number) || !strings.Contains(shown, "us.example") ||
				!strings.Contains(shown, "Harbor Dental") {
				t.Errorf("%s: %q does not show %s and its name", c.field, shown, way.Number)
			}
			if strings.Contains(invite, user.SIP.Username) {
				t.Errorf("the carrier is told the user name of the phone:\n%s", invite)
			}
			if r := company.CDR("+12125550142"); r.From != way.Number {
				t.Errorf("record is from %s", r.From)
			}
		})
	}
}

func TestOutbound_BlockedDestinations(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	company.AddCarrier(user.ID, nil)
	for _, c := range []struct {
		name, number, words, record string
		status                      int
	}{
		{"another country", "+493012345678", "country", "outbound failed blocked system 403", 403},
		{"a costly number", "+19005550142", "number", "outbound failed blocked system 403", 403},
		{"no number", "5555", "number", "outbound failed invalid_number system 404", 404},
		{"an emergency number without a trunk for it", "911", "mobile", "outbound failed no_route system 503", 503},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			own := company.In(t)
			run := own.Server.Sipp(rig.Script{Scenario: "call_refused", Login: &user.SIP, Number: c.number, Status: c.status})
			run.Wait()
			final := run.Received("SIP/2.0 "+"4", 1-c.status/500) // the first 4xx is the challenge
			if c.status >= 500 {
				final = run.Received("SIP/2.0 5", 0)
			}
			_, warning, _ := strings.Cut(strings.ToLower(final), "warning: 399 soniq ")
			if !strings.Contains(fixture.StartLine(warning), c.words) {
				t.Errorf("refused with %q, whose warning does not say %q", final, c.words)
			}
			if r := own.CDR(c.number); r.String() != c.record {
				t.Errorf("record: %s; want %s", r, c.record)
			}
		})
	}
}

func TestOutbound_AllowedCountry(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	way := company.AddCarrier(user.ID, nil)
	company.Want(200, "PATCH", "/organization", map[string]any{"outbound": map[string]any{"allowed_countries": []string{"US", "DE"}}}, nil)
	carrier := s.Sipp(rig.Script{Scenario: "answer", IP: way.IP, Port: way.Port})
	s.Sipp(rig.Script{Scenario: "call", Login: &user.SIP, Number: "011493012345678", Talk: 500 * time.Millisecond}).Wait()
	carrier.Wait()
	if r := company.CDR("+493012345678"); r.String() != "outbound completed caller_hangup caller 0" {
		t.Errorf("record: %s", r)
	}
}
