package trunk

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// signer is a carrier that signs caller numbers, with its key, certificate and authority.
type signer struct {
	t              testing.TB
	key            *ecdsa.PrivateKey
	address, roots string
	fetched        chan struct{}
}

// newSigner serves the certificate of a carrier by HTTPS.
func newSigner(t testing.TB, web rig.Certificate) *signer {
	t.Helper()
	s := &signer{t: t, roots: filepath.Join(t.TempDir(), "roots.pem"), fetched: make(chan struct{}, 100)}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s.must(err)
	s.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s.must(err)
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "policy authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "SHAKEN 1234"}, KeyUsage: x509.KeyUsageDigitalSignature,
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		ExtraExtensions: []pkix.Extension{{Id: []int{1, 3, 6, 1, 5, 5, 7, 1, 26}, Value: []byte("\x30\x08\xa0\x06\x16\x041234")}}}
	root, err := x509.CreateCertificate(rand.Reader, authority, authority, &authorityKey.PublicKey, authorityKey)
	s.must(err)
	der, err := x509.CreateCertificate(rand.Reader, leaf, authority, &s.key.PublicKey, authorityKey)
	s.must(err)
	s.must(os.WriteFile(s.roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root}), 0o600))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
		s.fetched <- struct{}{}
	}))
	pair, err := tls.LoadX509KeyPair(web.Cert, web.Key)
	s.must(err)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	t.Cleanup(server.Close)
	s.address = server.URL + "/certificate.pem"
	return s
}

// must fails on an error.
func (s *signer) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// sign returns the Identity of a call that is made now.
func (s *signer) sign(attest, from, to string) string {
	s.t.Helper()
	part := func(v any) string {
		b, err := json.Marshal(v)
		s.must(err)
		return base64.RawURLEncoding.EncodeToString(b)
	}
	signed := part(map[string]any{"alg": "ES256", "ppt": "shaken", "typ": "passport", "x5u": s.address}) + "." +
		part(map[string]any{"attest": attest, "dest": map[string]any{"tn": []string{strings.TrimPrefix(to, "+")}}, "iat": time.Now().Unix(),
			"orig": map[string]any{"tn": strings.TrimPrefix(from, "+")}, "origid": "de305d54-75b4-431b-adb2-eb6b9e546014"})
	digest := sha256.Sum256([]byte(signed))
	r, x, err := ecdsa.Sign(rand.Reader, s.key, digest[:])
	s.must(err)
	return signed + "." + base64.RawURLEncoding.EncodeToString(append(r.FillBytes(make([]byte, 32)), x.FillBytes(make([]byte, 32))...)) +
		";info=<" + s.address + ">;alg=ES256;ppt=shaken"
}

func TestSTIR_InboundVerified(t *testing.T) {
	t.Parallel()
	web := rig.NewCertificate(t)
	by := newSigner(t, web)
	s := rig.Start(t, rig.Options{Env: map[string]string{"SSL_CERT_FILE": web.Authority, "SONIQ_TRANSCRIBER": "off", "SONIQ_STIR_ROOTS": by.roots}})
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
		s.Sipp(rig.Script{Scenario: "call", IP: way.IP, From: from, Number: way.Number, Talk: 200 * time.Millisecond, Headers: headers}).Wait()
		phone.Wait()
		return phone.Received("INVITE ", 0), o.CDR(from).CallID
	}
	calls("+12155550100", "Identity: "+by.sign("A", "+12155550100", way.Number)) // the certificate may arrive after its first call
	rig.Until(t, "the certificate to be fetched", 10*time.Second, func() bool { return len(by.fetched) == 1 })
	tampered := by.sign("A", "+12155550113", way.Number)
	for _, c := range []struct{ from, identity, verstat, kind, key, is string }{
		{"+12155550111", "Identity: " + by.sign("A", "+12155550111", way.Number), "TN-Validation-Passed", "stir.verified", "attestation", "A"},
		{"+12155550112", "y: " + by.sign("C", "+12155550112", way.Number), "TN-Validation-Passed-C", "stir.verified", "attestation", "C"},
		{"+12155550113", "Identity: x" + tampered, "TN-Validation-Failed", "stir.failed", "reason", "invalid_identity_header"},
		{"+12155550114", "Identity: " + by.sign("A", "+12155550999", way.Number), "TN-Validation-Failed", "stir.failed", "problem", "it was signed for another caller"},
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
	if len(by.fetched) != 1 {
		t.Errorf("the certificate was fetched %d times", len(by.fetched))
	}
}

func TestSTIR_IdentityForwarded(t *testing.T) {
	t.Parallel()
	by := newSigner(t, rig.NewCertificate(t))
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech}) // this server verifies no signatures
	o := &fixture.Office{Org: fixture.NewOrg(s)}
	bob := o.AddUser("Bob")
	port, way := o.RegisterSipp(bob.SIP), o.AddCarrier(bob.ID, nil)
	first, second := by.sign("A", "+12155550121", way.Number), by.sign("B", "+12155550121", "+12025550100")
	headers := []string{"Identity: " + first, "y: " + second}
	phone := s.Sipp(rig.Script{Scenario: "answer", Port: port, From: bob.SIP.Username})
	s.Sipp(rig.Script{Scenario: "call", IP: way.IP, From: "+12155550120", Number: way.Number, Talk: 200 * time.Millisecond, Headers: headers}).Wait()
	phone.Wait()
	if invite := phone.Received("INVITE ", 0); rig.Field(invite, "Identity") != "" || rig.Field(invite, "P-Asserted-Identity") != "" {
		t.Errorf("the phone got\n%s", invite)
	}
	o.UpdateUser(bob, fixture.Forwarding("always", "(212) 555-0142"))
	carrier := s.Sipp(rig.Script{Scenario: "answer", IP: way.IP, Port: way.Port})
	s.Sipp(rig.Script{Scenario: "call", IP: way.IP, From: "+12155550121", Number: way.Number, Talk: 200 * time.Millisecond, Headers: headers}).Wait()
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
