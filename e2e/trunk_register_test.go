package e2e

import (
	"fmt"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// A trunk registers at a carrier that others wrote and is called there, with either algorithm of Digest.
func TestATrunkRegistersAtAKamailio(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []string{"MD5", "SHA-256"} {
		t.Run(algorithm, func(t *testing.T) {
			t.Parallel()
			s := rig.Start(t, rig.Options{Env: quiet})
			company := newSite(s)
			user := company.AddUser("Ada")
			n := addresses.Add(1)
			home, beyond := fmt.Sprintf("127.3.%d.%d", n/250, 1+n%250), fmt.Sprintf("127.4.%d.%d", n/250, 1+n%250)
			customer := rig.Login{Username: "customer-7", Password: "what the carrier gave us", Domain: "carrier.local"}
			carrier := rig.NewCarrier(t, rig.CarrierOptions{IP: home, Peer: beyond, Customer: customer, Algorithm: algorithm})

			trunk := company.registers(carrier, customer, "not the password")
			company.logIn(trunk, "failed")
			company.Want(200, "PATCH", "/trunks/"+trunk, map[string]any{"password": customer.Password}, nil)
			company.logIn(trunk, "registered")
			var number string // the second: with more than one, the carrier is told the user name as our contact
			for i := range 2 {
				number = fmt.Sprintf("+1202%d56%04d", 5+i, 1000+n)
				company.Want(201, "POST", "/numbers", map[string]any{"number": number, "trunk_id": trunk, "user_id": user.ID}, nil)
			}

			say, _ := tone(t, adaTone)
			phone := s.Phone(user.SIP, rig.PhoneOptions{Say: say, Auto: true})
			through := *s // who is beyond the carrier calls the carrier
			through.SIP = carrier.Address
			through.Sipp(rig.Script{Scenario: "call", IP: beyond, From: "+12125550177", Number: number, Talk: time.Second}).Wait()
			phone.Wait("CALL_CLOSED", "")
			if r := company.record("+12125550177"); r.String() != "inbound completed caller_hangup caller 0" || r.To != number || r.TrunkID == nil || *r.TrunkID != trunk {
				t.Errorf("record of the call that came: %s to %s by trunk %v", r, r.To, r.TrunkID)
			}
		})
	}
}

// registers adds a trunk that registers.
func (s *site) registers(at *rig.Carrier, customer rig.Login, password string) string {
	s.T.Helper()
	var made struct{ ID string }
	s.Want(200, "PATCH", "/organization", map[string]any{"emergency": map[string]any{"acknowledged": true}}, nil)
	s.Want(201, "POST", "/trunks", map[string]any{"name": "carrier", "kind": "register", "host": at.IP, "port": at.Port,
		"username": customer.Username, "password": password, "from_domain": customer.Domain}, &made)
	return made.ID
}

// logIn waits until the registration of a trunk has a status.
func (s *site) logIn(trunk, status string) {
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
