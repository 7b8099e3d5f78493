package attack

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// stirServer is a server that verifies signatures, with a user without a phone behind a trunk.
type stirServer struct {
	*fixture.Org
	way       fixture.Carrier
	authority *fixture.Signer
	calls     int
}

func newSTIRServer(t *testing.T, flags ...string) *stirServer {
	t.Helper()
	web := rig.NewCertificate(t)
	a := fixture.NewSigner(t, web)
	s := rig.Start(t, rig.Options{Flags: flags, Env: map[string]string{"SSL_CERT_FILE": web.Authority, "SONIQ_TRANSCRIBER": "off",
		"SONIQ_STIR_ROOTS": a.Roots}})
	x := &stirServer{Org: fixture.NewOrg(s), authority: a}
	x.way = x.AddCarrier(x.AddUser("Ada").ID, nil)
	return x
}

// newFrom returns the caller's number of the next call.
func (x *stirServer) newFrom() string {
	x.calls++
	return fmt.Sprintf("+1215555%04d", x.calls)
}

// verdict makes a call with an Identity header, and returns the reason of its failure, or its attestation.
func (x *stirServer) verdict(t *testing.T, from, identity string) string {
	t.Helper()
	began := time.Now()
	x.Server.Sipp(rig.Script{Scenario: "call_refused", Status: 480, IP: x.way.IP, From: from, Number: x.way.Number,
		Headers: []string{"Identity: " + identity}}).Wait()
	if d := time.Since(began); d > 8*time.Second {
		t.Errorf("the call from %s took %v", from, d)
	}
	path := "/calls/" + x.CDR(from).CallID
	for _, kind := range x.TimelineSteps(path) {
		if strings.HasPrefix(kind, "stir.") {
			d := x.WaitTimelineStep(strings.TrimPrefix(path, "/calls/"), kind)
			if kind == "stir.verified" {
				return "verified " + fmt.Sprint(d["attestation"])
			}
			return strings.TrimPrefix(kind, "stir.") + " " + fmt.Sprint(d["reason"])
		}
	}
	return "no step"
}

// settle calls until the certificate of a carrier was fetched.
func (x *stirServer) settle(t *testing.T, by fixture.SigningCarrier) {
	t.Helper()
	rig.Until(t, "the certificate of "+by.Address, 20*time.Second, func() bool {
		from := x.newFrom()
		return !strings.HasSuffix(x.verdict(t, from, by.Sign("A", from, x.way.Number)), "certificate_pending")
	})
}

// TestSTIR_ForgedSignatures covers signatures that are replayed, altered, or made with a certificate that does not cover the number.
func TestSTIR_ForgedSignatures(t *testing.T) {
	t.Parallel()
	x := newSTIRServer(t)
	good := x.authority.Carrier("/good.pem", nil)
	numbers, _ := asn1.Marshal([]asn1.RawValue{{Class: asn1.ClassContextSpecific, Tag: 2, IsCompound: true,
		Bytes: []byte("\x16\x0b12125550100")}})
	narrow := x.authority.Carrier("/narrow.pem", func(c *x509.Certificate) {
		c.ExtraExtensions = []pkix.Extension{{Id: fixture.ProviderCode.Id, Value: numbers}}
	})
	expired := x.authority.Carrier("/expired.pem", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	ca := x.authority.Carrier("/authority.pem", func(c *x509.Certificate) { c.IsCA, c.BasicConstraintsValid = true, true })
	stranger := fixture.NewSigner(t, rig.NewCertificate(t)).Carrier("/stranger.pem", nil)
	file := stranger.File()
	stranger = stranger.At(x.authority.Page("/stranger.pem", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(file) }))
	for _, by := range []fixture.SigningCarrier{good, narrow, expired, ca, stranger} {
		x.settle(t, by)
	}
	to := x.way.Number
	from := x.newFrom()
	if got := x.verdict(t, from, good.Sign("A", from, to)); got != "verified A" {
		t.Fatalf("a valid signature: %s", got)
	}
	replayed := good.Sign("A", from, to)
	noAlg := func(name string) func(h, _ map[string]any) { return func(h, _ map[string]any) { h["alg"] = name } }
	at := func(d time.Duration) func(_, p map[string]any) {
		return func(_, p map[string]any) { p["iat"] = time.Now().Add(d).Unix() }
	}
	for _, c := range []struct {
		name string
		sign func(from string) string
		want string
	}{
		{"that of another call", func(string) string { return replayed }, "failed invalid_identity_header"},
		{"for another called number", func(from string) string { return good.Sign("A", from, "+12025550000") }, "failed invalid_identity_header"},
		{"of an hour ago", func(from string) string { return good.SignAs("A", from, to, at(-time.Hour)) }, "failed stale_date"},
		{"of the next hour", func(from string) string { return good.SignAs("A", from, to, at(time.Hour)) }, "failed stale_date"},
		{"alg none", func(from string) string {
			token, _, _ := strings.Cut(good.SignAs("A", from, to, noAlg("none")), ";")
			return token[:strings.LastIndex(token, ".")+1] + ";info=<" + good.Address + ">;alg=none;ppt=shaken"
		}, "failed invalid_identity_header"},
		{"alg HS256", func(from string) string {
			return strings.Replace(good.SignAs("A", from, to, noAlg("HS256")), "alg=ES256", "alg=HS256", 1)
		}, "failed invalid_identity_header"},
		{"a signature of zeros", func(from string) string {
			token, params, _ := strings.Cut(good.Sign("A", from, to), ";")
			return token[:strings.LastIndex(token, ".")+1] + base64.RawURLEncoding.EncodeToString(make([]byte, 64)) + ";" + params
		}, "failed invalid_identity_header"},
		{"of another carrier, with the good address", func(from string) string { return stranger.At(good.Address).Sign("A", from, to) },
			"failed invalid_identity_header"},
		{"by an unknown authority", func(from string) string { return stranger.Sign("A", from, to) }, "failed unsupported_credential"},
		{"by one for another number", func(from string) string { return narrow.Sign("A", from, to) }, "failed unsupported_credential"},
		{"by an expired certificate", func(from string) string { return expired.Sign("A", from, to) }, "failed unsupported_credential"},
		{"by an authority itself", func(from string) string { return ca.Sign("A", from, to) }, "failed unsupported_credential"},
		{"garbage", func(string) string { return "....;info=<>;;=,\"" }, "failed invalid_identity_header"},
	} {
		from := x.newFrom()
		if got := x.verdict(t, from, c.sign(from)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestSTIR_CertificateAddresses covers addresses of certificates that the caller chose to harm the server.
func TestSTIR_CertificateAddresses(t *testing.T) {
	t.Parallel()
	const inside = "127.77.0.9" // not among the addresses that the operator allows
	x := newSTIRServer(t, "--allow-targets", "127.0.0.1/32,127.1.0.0/16")
	l, err := net.Listen("tcp", inside+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	touched := make(chan struct{}, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
			touched <- struct{}{}
		}
	}()
	good := x.authority.Carrier("/good.pem", nil)
	stop := make(chan struct{})
	defer close(stop)
	slow := x.authority.Page("/slow.pem", func(w http.ResponseWriter, r *http.Request) {
		for {
			if _, err := w.Write([]byte("-")); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			select {
			case <-stop:
				return
			case <-r.Context().Done():
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	huge := x.authority.Page("/huge.pem", func(w http.ResponseWriter, _ *http.Request) {
		part := bytes.Repeat([]byte("-"), 1<<20)
		for range 200 {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	})
	elsewhere := x.authority.Page("/moved.pem", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://"+l.Addr().String()+"/x.pem", http.StatusFound)
	})
	grown := growth(t, x.Server, func() {
		for _, address := range []string{"https://" + l.Addr().String() + "/x.pem", "http://" + l.Addr().String() + "/x.pem",
			"https://localhost:" + fmt.Sprint(l.Addr().(*net.TCPAddr).Port), "https://2135752713:" + fmt.Sprint(l.Addr().(*net.TCPAddr).Port) + "/x",
			"file:///etc/passwd", slow, huge, elsewhere} {
			for range 2 { // the second call finds the result of the download, or waits again
				from := x.newFrom()
				if got := x.verdict(t, from, good.At(address).Sign("A", from, x.way.Number)); got != "unverified bad_identity_info" && got != "unverified certificate_pending" {
					t.Errorf("a certificate at %s: %s", address, got)
				}
			}
		}
	})
	if grown > 100<<20 {
		t.Errorf("the downloads took %d MB", grown>>20)
	}
	select {
	case <-touched:
		t.Error("the server connected to an address that is not allowed")
	default:
	}
	x.settle(t, good)
	if from := x.newFrom(); x.verdict(t, from, good.Sign("A", from, x.way.Number)) != "verified A" {
		t.Error("a good signature is not verified any more")
	}
}
