package stir_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"soniq/internal/protocol/stir"
)

func TestVerify_ValidSignature(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	v, c := w.newVerifier(), w.newCarrier("/c.pem", authorizedFor(false, 0, "1234", 1))
	for attest, verstat := range map[string]string{"A": "TN-Validation-Passed", "B": "TN-Validation-Passed-B", "C": "TN-Validation-Passed-C"} {
		r := v.Verify(t.Context(), []string{c.sign(c.claim(attest))}, caller, "+1 (202) 555-0143")
		if r.Failure != nil || r.Attestation != attest || r.OrigID != "123e4567-e89b-12d3-a456-426655440000" || r.Verstat() != verstat ||
			r.Certificate != c.address {
			t.Errorf("%s: %+v %+v", attest, r, r.Failure)
		}
	}
	if n := w.fetched.Load(); n != 1 {
		t.Errorf("the certificate was fetched %d times", n)
	}
}

func TestVerify_ClaimsMustMatchCall(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	v, c := w.newVerifier(), w.newCarrier("/c.pem", nil)
	other := newFixture(t)
	stranger := other.newCarrier("/s.pem", nil)
	w.setFile("/s.pem", other.files["/s.pem"])
	w.setFile("/large.pem", append(w.files["/c.pem"], make([]byte, 64<<10)...))
	w.setFile("/none.pem", []byte("hello"))
	plain := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { _, _ = out.Write(w.files["/c.pem"]) }))
	t.Cleanup(plain.Close)
	at := func(path string) func(*claim) {
		return func(x *claim) {
			x.header["x5u"], x.params = w.server.URL+path, ";info=<"+w.server.URL+path+">;ppt=shaken"
		}
	}
	swap := func(part int, by string) func(string) string {
		return func(token string) string {
			parts := strings.Split(token, ".")
			parts[part] = by
			return strings.Join(parts, ".")
		}
	}
	for name, k := range map[string]struct {
		change func(*claim)
		want   string
	}{
		"as it is":          {func(*claim) {}, "passed A"},
		"quoted parameters": {func(x *claim) { x.params = " ; ppt=\"shaken\"; alg=ES256 ;info=<" + c.address + ">" }, "passed A"},
		"without its type":  {func(x *claim) { delete(x.header, "ppt"); x.params = ";info=<" + c.address + ">" }, "passed "},
		"several called":    {func(x *claim) { x.payload["dest"] = map[string]any{"tn": []string{"1", called}} }, "passed A"},
		"30 s ago":          {func(x *claim) { x.payload["iat"] = w.now().Unix() - 30 }, "passed A"},
		"stale":             {func(x *claim) { x.payload["iat"] = w.now().Unix() - 62 }, "stale_date"},
		"from the future":   {func(x *claim) { x.payload["iat"] = w.now().Unix() + 62 }, "stale_date"},
		"without a time":    {func(x *claim) { delete(x.payload, "iat") }, "stale_date"},
		"another called":    {func(x *claim) { x.payload["dest"] = map[string]any{"tn": []string{"12025550144"}} }, "invalid_identity_header"},
		"nobody called":     {func(x *claim) { delete(x.payload, "dest") }, "invalid_identity_header"},
		"another caller":    {func(x *claim) { x.payload["orig"] = map[string]any{"tn": "12155550113"} }, "invalid_identity_header"},
		"attestation D":     {func(x *claim) { x.payload["attest"] = "D" }, "invalid_identity_header"},
		"tampered payload":  {func(x *claim) { x.tamper = swap(1, part(c.claim("B").payload)) }, "invalid_identity_header"},
		"tampered header": {func(x *claim) {
			x.tamper = swap(0, part(map[string]any{"alg": "ES256", "ppt": "shaken", "typ": "passport", "x5u": c.address, "a": 1}))
		}, "invalid_identity_header"},
		"tampered signature":  {func(x *claim) { x.tamper = swap(2, base64.RawURLEncoding.EncodeToString(make([]byte, 64))) }, "invalid_identity_header"},
		"short signature":     {func(x *claim) { x.tamper = swap(2, "AAAA") }, "invalid_identity_header"},
		"no signature":        {func(x *claim) { x.tamper = func(s string) string { return s[:strings.LastIndexByte(s, '.')] } }, "invalid_identity_header"},
		"compact form":        {func(x *claim) { x.tamper = func(s string) string { return ".." + s[strings.LastIndexByte(s, '.')+1:] } }, "invalid_identity_header"},
		"unsigned":            {func(x *claim) { x.header["alg"] = "none" }, "invalid_identity_header"},
		"another algorithm":   {func(x *claim) { x.params = ";info=<" + c.address + ">;alg=RS256;ppt=shaken" }, "invalid_identity_header"},
		"no passport":         {func(x *claim) { x.header["typ"] = "JWT" }, "invalid_identity_header"},
		"critical extension":  {func(x *claim) { x.header["crit"] = []string{"b64"} }, "invalid_identity_header"},
		"another type":        {func(x *claim) { x.header["ppt"] = "rph" }, "invalid_identity_header"},
		"another certificate": {func(x *claim) { x.params = ";info=<" + c.address + "?x>;ppt=shaken" }, "invalid_identity_header"},
		"nowhere":             {func(x *claim) { x.params = ";alg=ES256;ppt=shaken" }, "invalid_identity_header"},
		"open bracket":        {func(x *claim) { x.params = ";info=<" + c.address }, "invalid_identity_header"},
		"much too long":       {func(x *claim) { x.payload["x"] = strings.Repeat("x", 8<<10) }, "invalid_identity_header"},
		"about a diversion":   {func(x *claim) { x.params = ";info=<" + c.address + ">;ppt=div" }, "use_identity_header"},
		"by http": {func(x *claim) {
			x.header["x5u"], x.params = plain.URL, ";info=<"+plain.URL+">;ppt=shaken"
		}, "bad_identity_info"},
		"too large":       {at("/large.pem"), "bad_identity_info"},
		"not there":       {at("/gone.pem"), "bad_identity_info"},
		"no certificate":  {at("/none.pem"), "bad_identity_info"},
		"somebody else's": {at("/s.pem"), "unsupported_credential"},
	} {
		x := c.claim("A")
		k.change(&x)
		if got := resultText(v.Verify(t.Context(), []string{c.sign(x)}, caller, called)); got != k.want {
			t.Errorf("%s: %s, want %s", name, got, k.want)
		}
	}
	x := stranger.claim("A")
	x.header["x5u"], x.params = w.server.URL+"/s.pem", ";info=<"+w.server.URL+"/s.pem>;ppt=shaken"
	if r := v.Verify(t.Context(), []string{stranger.sign(x)}, caller, called); resultText(r) != "unsupported_credential" || r.Verstat() != "TN-Validation-Failed" || r.Failure.Code != 437 {
		t.Errorf("an authority nobody knows: %+v %+v", r, r.Failure)
	}
}

func part(v any) string {
	b, _ := json.Marshal(v)
	return base64.RawURLEncoding.EncodeToString(b)
}

func TestVerify_CertificateAuthorization(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	v := w.newVerifier()
	for name, k := range map[string]struct {
		change func(*x509.Certificate)
		want   string
	}{
		"/provider.pem":  {authorizedFor(true, 0, "1234", 1), "passed A"},
		"/one.pem":       {authorizedFor(false, 2, "12155550112", 1), "passed A"},
		"/range.pem":     {authorizedFor(false, 2, "1", 1, 1, "12155550100", 13), "passed A"},
		"/short.pem":     {authorizedFor(false, 1, "12155550100", 12), "unsupported_credential"},
		"/above.pem":     {authorizedFor(false, 1, "12155550113", 2), "unsupported_credential"},
		"/another.pem":   {authorizedFor(true, 2, "12155550113", 1), "unsupported_credential"},
		"/digits.pem":    {authorizedFor(false, 1, "2155550112", 15<<30), "unsupported_credential"},
		"/negative.pem":  {authorizedFor(false, 1, "12155550100", -1), "unsupported_credential"},
		"/malformed.pem": {authorizedFor(false, 3, "12155550112", 1), "unsupported_credential"},
		"/expired.pem":   {func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }, "unsupported_credential"},
		"/early.pem":     {func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }, "unsupported_credential"},
		"/authority.pem": {func(c *x509.Certificate) { c.IsCA = true }, "unsupported_credential"},
		"/exchange.pem":  {func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageKeyAgreement }, "unsupported_credential"},
		"/bound.pem": {func(c *x509.Certificate) {
			c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 27}, Value: []byte{0x30, 0}}}
		}, "unsupported_credential"},
		"/critical.pem": {func(c *x509.Certificate) {
			c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 2, 3}, Critical: true, Value: []byte{0x30, 0}}}
		}, "unsupported_credential"},
	} {
		c := w.newCarrier(name, k.change)
		if r := v.Verify(t.Context(), []string{c.sign(c.claim("A"))}, caller, called); resultText(r) != k.want {
			t.Errorf("%s: %s (%v), want %s", name, resultText(r), r.Failure, k.want)
		}
	}
}

func TestVerify_OneValidSignatureSuffices(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	v, c := w.newVerifier(), w.newCarrier("/c.pem", nil)
	bad := c.claim("A")
	bad.payload["iat"] = 1
	if got := resultText(v.Verify(t.Context(), []string{"nonsense", c.sign(bad), c.sign(c.claim("B"))}, caller, called)); got != "passed B" {
		t.Errorf("the third is good: %s", got)
	}
	if got := resultText(v.Verify(t.Context(), []string{c.sign(bad), "nonsense"}, caller, called)); got != "stale_date" {
		t.Errorf("none is good: %s", got)
	}
	if r := v.Verify(t.Context(), nil, caller, called); r.Failure.Code != 428 || r.Verstat() != "No-TN-Validation" {
		t.Errorf("there is none: %+v", r.Failure)
	}
	if r := v.Verify(t.Context(), []string{c.sign(c.claim("A"))}, "anonymous", called); resultText(r) != "caller_withheld" || r.SignatureInvalid() {
		t.Errorf("who calls is not told: %+v", r.Failure)
	}
}

func TestCertCache_TTLAndRefresh(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	v, first := w.newVerifier(), w.newCarrier("/c.pem", nil)
	verify := func(c carrier) string {
		return resultText(v.Verify(t.Context(), []string{c.sign(c.claim("A"))}, caller, called))
	}
	until := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); !ok(); {
			if time.Now().After(deadline) {
				t.Fatalf("in vain: %s", what)
			}
		}
	}
	is := func(c carrier, want string, fetched int64) {
		t.Helper()
		if got := verify(c); got != want || w.fetched.Load() != fetched {
			t.Fatalf("%s, and fetched %d times; want %s, %d", got, w.fetched.Load(), want, fetched)
		}
	}
	is(first, "passed A", 1)
	w.advance(45 * time.Minute)
	is(first, "passed A", 1)
	second := w.newCarrier("/c.pem", nil) // another key
	w.advance(6 * time.Minute)
	until("the new one is fetched while the old one is used", func() bool { return verify(second) == "passed A" })
	w.setFile("/c.pem", nil)
	w.advance(51 * time.Minute)
	until("it is asked for again", func() bool { _ = verify(second); return w.fetched.Load() == 3 })
	is(second, "passed A", 3) // the refreshed certificate is invalid: the old one is used
	w.advance(10 * time.Minute)
	is(second, "bad_identity_info", 4)
	third := w.newCarrier("/c.pem", nil)
	is(third, "bad_identity_info", 4)
	w.advance(61 * time.Second)
	is(third, "passed A", 5)
}

// Many bad addresses do not remove a certificate that is in use.
func TestCertCache_FailuresAreRemovedFirst(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	v, c := w.newVerifier(), w.newCarrier("/c.pem", nil)
	verify := func(c carrier) string {
		return resultText(v.Verify(t.Context(), []string{c.sign(c.claim("A"))}, caller, called))
	}
	if got := verify(c); got != "passed A" {
		t.Fatal(got)
	}
	const bad = 1100 // more than are cached
	for i := range bad {
		x := c
		if x.address += fmt.Sprint(".", i); verify(x) != "bad_identity_info" {
			t.Fatal("a certificate that is not there is accepted")
		}
	}
	if got := verify(c); got != "passed A" || w.fetched.Load() != 1+bad {
		t.Errorf("%s, after %d downloads", got, w.fetched.Load())
	}
}

func TestCertCache_LateDownloadUsedByNextCall(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	c := w.newCarrier("/c.pem", nil)
	let := make(chan struct{})
	asked := atomic.Int64{}
	slow := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		<-let
		_, _ = out.Write(w.files["/c.pem"])
	}))
	t.Cleanup(slow.Close)
	roots := x509.NewCertPool()
	roots.AddCert(w.authority)
	v := stir.New(stir.Config{Roots: roots, Client: slow.Client(), Now: w.now, Wait: 20 * time.Millisecond})
	t.Cleanup(v.Close)
	c.address = slow.URL + "/c.pem"
	header := c.sign(c.claim("A"))
	for range 2 {
		if r := v.Verify(t.Context(), []string{header}, caller, called); resultText(r) != "certificate_pending" ||
			r.Verstat() != "No-TN-Validation" {
			t.Fatalf("%+v", r)
		}
	}
	close(let)
	for deadline := time.Now().Add(10 * time.Second); ; {
		got := resultText(v.Verify(t.Context(), []string{header}, caller, called))
		if got == "passed A" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(got)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}
