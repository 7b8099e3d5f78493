package emergency

import (
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// noticed are the recording settings that every country allows.
var noticed = map[string]any{"announce": true}

// An extension from before its number was reserved does not take the emergency call.
// https://github.com/fusionpbx/fusionpbx/pull/5869
func TestEmergency_NumberThatIsAnExtension(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	company.Want(200, "PATCH", "/users/"+user.ID, map[string]any{"extension": "118"}, nil)
	way := company.AddCarrier("", map[string]any{"emergency_capable": true})
	company.Want(200, "PATCH", "/organization", map[string]any{"country": "JP", "recording": noticed}, nil)
	carrier := s.Sipp(rig.Script{Scenario: "answer", IP: way.IP, Port: way.Port})
	s.Sipp(rig.Script{Scenario: "call", Login: &user.SIP, Number: "118", Talk: 500 * time.Millisecond}).Wait()
	carrier.Wait()
	if invite := carrier.Received("INVITE ", 0); !strings.HasPrefix(invite, "INVITE sip:118@") {
		t.Errorf("the carrier got %s", invite)
	}
	company.Want(200, "PATCH", "/users/"+user.ID, map[string]any{"first_name": "Grace"}, nil) // the old extension does not prevent a change
	company.Want(422, "POST", "/users", map[string]any{"email": "j@jp.example", "first_name": "J", "extension": "119"}, nil)
	company.Want(200, "PATCH", "/organization", map[string]any{"country": "FR", "recording": noticed}, nil)
	for _, extension := range []string{"114", "115", "119", "191", "196", "197"} {
		company.Want(422, "POST", "/users", map[string]any{"email": extension + "@fr.example", "first_name": "F", "extension": extension}, nil)
		company.Want(422, "POST", "/queues", map[string]any{"name": extension, "extension": extension}, nil)
	}
}

// A short number that is no emergency number leaves as it was dialled.
// https://github.com/fusionpbx/fusionpbx/pull/5869
func TestShortNumber_LeavesAsDialled(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	for country, number := range map[string]string{"US": "988", "CA": "411", "DE": "116117", "GB": "101"} {
		t.Run(country, func(t *testing.T) {
			own := *s
			own.T = t
			company := fixture.NewOrg(&own)
			user := company.AddUser("Ada")
			way := company.AddCarrier("", nil)
			company.Want(200, "PATCH", "/organization", map[string]any{"country": country, "recording": noticed, "outbound": map[string]any{"allowed_countries": []string{country}}}, nil)
			carrier := own.Sipp(rig.Script{Scenario: "answer", IP: way.IP, Port: way.Port})
			own.Sipp(rig.Script{Scenario: "call", Login: &user.SIP, Number: number, Talk: 300 * time.Millisecond}).Wait()
			carrier.Wait()
			if invite := carrier.Received("INVITE ", 0); !strings.HasPrefix(invite, "INVITE sip:"+number+"@") {
				t.Errorf("the carrier got %s", fixture.StartLine(invite))
			}
			if r := company.CDR(number); r.String() != "outbound completed caller_hangup caller 0" {
				t.Errorf("record: %s", r)
			}
		})
	}
}
