package trunk

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// A trunk registers at a third-party carrier and receives calls there, with either Digest algorithm.
func TestRegistration_Kamailio(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []string{"MD5", "SHA-256"} {
		t.Run(algorithm, func(t *testing.T) {
			t.Parallel()
			s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
			company := fixture.NewOrg(s)
			user := company.AddUser("Ada")
			n := fixture.Addresses.Add(1)
			home, beyond := fmt.Sprintf("127.3.%d.%d", n/250, 1+n%250), fmt.Sprintf("127.4.%d.%d", n/250, 1+n%250)
			customer := rig.Login{Username: "customer-7", Password: "what the carrier gave us", Domain: "carrier.local"}
			carrier := rig.NewCarrier(t, rig.CarrierOptions{IP: home, Peer: beyond, Customer: customer, Algorithm: algorithm})

			trunk := addRegisteringTrunk(company, carrier, customer, "not the password")
			waitRegistration(company, trunk, "failed")
			var number string
			addNumber := func(area int) {
				number = fmt.Sprintf("+1202%d56%04d", area, 1000+n)
				company.Want(201, "POST", "/numbers", map[string]any{"number": number, "trunk_id": trunk, "user_id": user.ID}, nil)
			}
			addNumber(5)
			company.Want(200, "PATCH", "/trunks/"+trunk, map[string]any{"password": customer.Password}, nil)
			waitRegistration(company, trunk, "registered")
			addNumber(6) // the contact at the carrier is still the first number, and calls for the second arrive with it

			say, _ := fixture.Tone(t, fixture.AdaTone)
			phone := s.Phone(user.SIP, rig.PhoneOptions{Say: say, Auto: true})
			through := *s // an outside caller calls the address of the carrier
			through.SIP = carrier.Address
			through.Sipp(rig.Script{Scenario: "call", IP: beyond, From: "+12125550177", Number: number, Talk: time.Second}).Wait()
			phone.Wait("CALL_CLOSED", "")
			if r := company.CDR("+12125550177"); r.String() != "inbound completed caller_hangup caller 0" || r.To != number || r.TrunkID == nil || *r.TrunkID != trunk {
				t.Errorf("record of the call that came: %s to %s by trunk %v", r, r.To, *cmp.Or(r.TrunkID, new(string)))
			}
		})
	}
}

// addRegisteringTrunk adds a trunk that registers.
func addRegisteringTrunk(s *fixture.Org, at *rig.Carrier, customer rig.Login, password string) string {
	s.T.Helper()
	var made struct{ ID string }
	s.Want(200, "PATCH", "/organization", map[string]any{"emergency": map[string]any{"acknowledged": true}}, nil)
	s.Want(201, "POST", "/trunks", map[string]any{"name": "carrier", "kind": "register", "host": at.IP, "port": at.Port,
		"username": customer.Username, "password": password, "from_domain": customer.Domain}, &made)
	return made.ID
}

// waitRegistration waits until the registration of a trunk has a status.
func waitRegistration(s *fixture.Org, trunk, status string) {
	s.T.Helper()
	var seen map[string]any
	defer func() {
		if s.T.Failed() {
			s.T.Logf("the trunk is %v", seen)
		}
	}()
	rig.Until(s.T, "the trunk to be "+status, time.Minute, func() bool {
		seen = nil
		s.Want(200, "GET", "/trunks/"+trunk, nil, &seen)
		login, _ := seen["registration"].(map[string]any)
		return login["status"] == status
	})
}
