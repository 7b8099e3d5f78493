package trunk

import (
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestSTIR_InboundVerified(t *testing.T) {
	t.Parallel()
	web := rig.NewCertificate(t)
	authority := fixture.NewSigner(t, web)
	by := authority.Carrier("/certificate.pem", nil)
	s := rig.Start(t, rig.Options{Env: map[string]string{"SSL_CERT_FILE": web.Authority, "SONIQ_TRANSCRIBER": "off", "SONIQ_STIR_ROOTS": authority.Roots}})
	o := &fixture.Office{Org: fixture.NewOrg(s)}
	bob := o.AddUser("Bob")
	port, way := o.RegisterSipp(bob.SIP), o.AddCarrier(bob.ID, nil)
	// calls makes one call to Bob, who answers, and returns the INVITE to his phone and the id of the call.
	calls := func(from, identity string) (invite, callID string) {
		t.Helper()
		var headers []string
		if identity != "" {
			headers = []string{identity}
		}
		phone := s.Sipp(rig.Script{Scenario: "answer", Port: port, From: bob.SIP.Username})
		s.Sipp(rig.Script{Scenario: "call", IP: way.IP, From: from, Number: way.Number, Talk: 200 * time.Millisecond,
			Headers: headers}).Wait()
		phone.Wait()
		return phone.Received("INVITE ", 0), o.CDR(from).CallID
	}
	calls("+12155550100", "Identity: "+by.Sign("A", "+12155550100", way.Number)) // the certificate may arrive after its first call
	rig.Until(t, "the certificate to be fetched", 10*time.Second, func() bool { return len(authority.Fetched) == 1 })
	tampered := by.Sign("A", "+12155550113", way.Number)
	for _, c := range []struct{ from, identity, verstat, kind, key, is string }{
		{"+12155550111", "Identity: " + by.Sign("A", "+12155550111", way.Number), "TN-Validation-Passed", "stir.verified", "attestation", "A"},
		{"+12155550112", "y: " + by.Sign("C", "+12155550112", way.Number), "TN-Validation-Passed-C", "stir.verified", "attestation", "C"},
		{"+12155550113", "Identity: x" + tampered, "TN-Validation-Failed", "stir.failed", "reason", "invalid_identity_header"},
		{"+12155550114", "Identity: " + by.Sign("A", "+12155550999", way.Number), "TN-Validation-Failed", "stir.failed", "problem", "it was signed for another caller"},
		{"+12155550115", "", "No-TN-Validation", "stir.unverified", "reason", "use_identity_header"},
	} {
		invite, id := calls(c.from, c.identity)
		if got, want := rig.Field(invite, "P-Asserted-Identity"), "<tel:"+c.from+";verstat="+c.verstat+">"; got != want || rig.Field(invite, "Identity") != "" {
			t.Errorf("of %s the phone is told %q, want %q:\n%s", c.from, got, want, invite)
		}
		if told := o.WaitTimelineStep(id, c.kind); told[c.key] != c.is {
			t.Errorf("of %s the timeline tells %v", c.from, told)
		}
	}
	if len(authority.Fetched) != 1 {
		t.Errorf("the certificate was fetched %d times", len(authority.Fetched))
	}
}

func TestSTIR_IdentityForwarded(t *testing.T) {
	t.Parallel()
	by := fixture.NewSigner(t, rig.NewCertificate(t)).Carrier("/certificate.pem", nil)
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech}) // this server verifies no signatures
	o := &fixture.Office{Org: fixture.NewOrg(s)}
	bob := o.AddUser("Bob")
	port, way := o.RegisterSipp(bob.SIP), o.AddCarrier(bob.ID, nil)
	first, second := by.Sign("A", "+12155550121", way.Number), by.Sign("B", "+12155550121", "+12025550100")
	headers := []string{"Identity: " + first, "y: " + second}
	phone := s.Sipp(rig.Script{Scenario: "answer", Port: port, From: bob.SIP.Username})
	s.Sipp(rig.Script{Scenario: "call", IP: way.IP, From: "+12155550120", Number: way.Number, Talk: 200 * time.Millisecond,
		Headers: headers}).Wait()
	phone.Wait()
	if invite := phone.Received("INVITE ", 0); rig.Field(invite, "Identity") != "" || rig.Field(invite, "P-Asserted-Identity") != "" {
		t.Errorf("the phone got\n%s", invite)
	}
	o.UpdateUser(bob, fixture.Forwarding("always", "(212) 555-0142"))
	carrier := s.Sipp(rig.Script{Scenario: "answer", IP: way.IP, Port: way.Port})
	s.Sipp(rig.Script{Scenario: "call", IP: way.IP, From: "+12155550121", Number: way.Number, Talk: 200 * time.Millisecond,
		Headers: headers}).Wait()
	carrier.Wait()
	if invite := carrier.Received("INVITE ", 0); !strings.Contains(invite, "\nIdentity: "+first+"\nIdentity: "+second+"\n") || strings.Count(invite, "Identity: ") != 3 { // P-Asserted- too
		t.Errorf("the carrier got\n%s", invite)
	}
	// Identity headers from a registered phone are not forwarded.
	carrier = s.Sipp(rig.Script{Scenario: "answer", IP: way.IP, Port: way.Port})
	s.Sipp(rig.Script{Scenario: "call", Login: &bob.SIP, Number: "2125550143", Talk: 200 * time.Millisecond, Headers: headers}).Wait()
	carrier.Wait()
	if invite := carrier.Received("INVITE ", 0); strings.Contains(invite, "\nIdentity: ") {
		t.Errorf("of a phone's call the carrier got\n%s", invite)
	}
}
