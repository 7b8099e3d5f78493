package stir_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"soniq/stir"
)

const caller, called = "+12155550112", "+12025550143"

// A world has carriers, an authority that signs their certificates, and a server that has them.
type world struct {
	t         testing.TB
	authority *x509.Certificate
	signer    *ecdsa.PrivateKey
	server    *httptest.Server
	fetched   atomic.Int64

	mu    sync.Mutex // guards files and clock
	files map[string][]byte
	clock time.Time
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, signer: newKey(t), files: map[string][]byte{}, clock: time.Now()}
	w.authority = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: w.clock.Add(-time.Hour), NotAfter: w.clock.Add(48 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, w.authority, w.authority, &w.signer.PublicKey, w.signer)
	if err != nil {
		t.Fatal(err)
	}
	if w.authority, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	w.server = httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.fetched.Add(1)
		w.mu.Lock()
		file, ok := w.files[r.URL.Path]
		w.mu.Unlock()
		if !ok {
			http.NotFound(out, r)
			return
		}
		_, _ = out.Write(file)
	}))
	t.Cleanup(w.server.Close)
	return w
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock = w.clock.Add(d)
}

// verifier trusts the authority.
func (w *world) verifier() *stir.Verifier {
	roots := x509.NewCertPool()
	roots.AddCert(w.authority)
	v := stir.New(stir.Config{Roots: roots, Client: w.server.Client(), Now: w.now, Wait: 10 * time.Second})
	w.t.Cleanup(v.Close)
	return v
}

// A carrier signs calls.
type carrier struct {
	w       *world
	address string // of its certificate
	key     *ecdsa.PrivateKey
}

// carrier makes one whose certificate is changed before it is signed.
func (w *world) carrier(path string, change func(*x509.Certificate)) carrier {
	w.t.Helper()
	c := carrier{w, w.server.URL + path, newKey(w.t)}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "SHAKEN 1234"}, KeyUsage: x509.KeyUsageDigitalSignature,
		NotBefore: w.authority.NotBefore, NotAfter: w.authority.NotAfter, BasicConstraintsValid: true}
	if change != nil {
		change(leaf)
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, w.authority, &c.key.PublicKey, w.signer)
	if err != nil {
		w.t.Fatal(err)
	}
	w.put(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return c
}

func (w *world) put(path string, file []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.files[path] = file
}

// numbers is the extension of a certificate for certain numbers: entries are tag, start and count, which is 1 for a single one.
func numbers(critical bool, entries ...any) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		var list []asn1.RawValue
		for i := 0; i < len(entries); i += 3 {
			tag, start, count := entries[i].(int), entries[i+1].(string), entries[i+2].(int)
			inside, _ := asn1.MarshalWithParams(start, "ia5")
			if tag == 1 {
				inside, _ = asn1.Marshal(struct {
					Start string `asn1:"ia5"`
					Count int
				}{start, count})
			}
			list = append(list, asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: tag, IsCompound: true, Bytes: inside})
		}
		der, _ := asn1.Marshal(list)
		c.ExtraExtensions = append(c.ExtraExtensions, pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 26}, Critical: critical, Value: der})
	}
}

// claim is what a carrier signs.
type claim struct {
	header, payload map[string]any
	params          string // of the Identity header; "" as they should be
	tamper          func(token string) string
}

func (c carrier) claim(attest string) claim {
	return claim{
		header: map[string]any{"alg": "ES256", "ppt": "shaken", "typ": "passport", "x5u": c.address},
		payload: map[string]any{"attest": attest, "dest": map[string]any{"tn": []string{called[1:]}}, "iat": c.w.now().Unix(),
			"orig": map[string]any{"tn": caller[1:]}, "origid": "123e4567-e89b-12d3-a456-426655440000"},
	}
}

func (c carrier) sign(x claim) string {
	c.w.t.Helper()
	part := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			c.w.t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	signed := part(x.header) + "." + part(x.payload)
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, c.key, digest[:])
	if err != nil {
		c.w.t.Fatal(err)
	}
	token := signed + "." + base64.RawURLEncoding.EncodeToString(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
	if x.tamper != nil {
		token = x.tamper(token)
	}
	if x.params == "" {
		x.params = ";info=<" + c.address + ">;alg=ES256;ppt=shaken"
	}
	return token + x.params
}

// told is a result in a word.
func told(r stir.Result) string {
	if r.Failure != nil {
		return r.Failure.Reason
	}
	return "passed " + r.Attestation
}

func TestWhoeverMaySignIsBelieved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v, c := w.verifier(), w.carrier("/c.pem", numbers(false, 0, "1234", 1))
	for attest, verstat := range map[string]string{"A": "TN-Validation-Passed", "B": "TN-Validation-Passed-B", "C": "TN-Validation-Passed-C"} {
		r := v.Verify(t.Context(), []string{c.sign(c.claim(attest))}, caller, "+1 (202) 555-0143")
		if r.Failure != nil || r.Attestation != attest || r.OrigID != "123e4567-e89b-12d3-a456-426655440000" || r.Verstat() != verstat || r.Certificate != c.address {
			t.Errorf("%s: %+v %+v", attest, r, r.Failure)
		}
	}
	if n := w.fetched.Load(); n != 1 {
		t.Errorf("the certificate was fetched %d times", n)
	}
}

func TestWhatIsSignedMustFitTheCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v, c := w.verifier(), w.carrier("/c.pem", nil)
	other := newWorld(t)
	stranger := other.carrier("/s.pem", nil)
	w.put("/s.pem", other.files["/s.pem"])
	w.put("/large.pem", append(w.files["/c.pem"], make([]byte, 64<<10)...))
	w.put("/none.pem", []byte("hello"))
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
		if got := told(v.Verify(t.Context(), []string{c.sign(x)}, caller, called)); got != k.want {
			t.Errorf("%s: %s, want %s", name, got, k.want)
		}
	}
	x := stranger.claim("A")
	x.header["x5u"], x.params = w.server.URL+"/s.pem", ";info=<"+w.server.URL+"/s.pem>;ppt=shaken"
	if r := v.Verify(t.Context(), []string{stranger.sign(x)}, caller, called); told(r) != "unsupported_credential" || r.Verstat() != "TN-Validation-Failed" || r.Failure.Code != 437 {
		t.Errorf("an authority nobody knows: %+v %+v", r, r.Failure)
	}
}

func part(v any) string {
	b, _ := json.Marshal(v)
	return base64.RawURLEncoding.EncodeToString(b)
}

func TestCertificatesMustBeGoodForTheNumber(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.verifier()
	for name, k := range map[string]struct {
		change func(*x509.Certificate)
		want   string
	}{
		"/provider.pem":  {numbers(true, 0, "1234", 1), "passed A"},
		"/one.pem":       {numbers(false, 2, "12155550112", 1), "passed A"},
		"/range.pem":     {numbers(false, 2, "1", 1, 1, "12155550100", 13), "passed A"},
		"/short.pem":     {numbers(false, 1, "12155550100", 12), "unsupported_credential"},
		"/above.pem":     {numbers(false, 1, "12155550113", 2), "unsupported_credential"},
		"/another.pem":   {numbers(true, 2, "12155550113", 1), "unsupported_credential"},
		"/digits.pem":    {numbers(false, 1, "2155550112", 15<<30), "unsupported_credential"},
		"/negative.pem":  {numbers(false, 1, "12155550100", -1), "unsupported_credential"},
		"/malformed.pem": {numbers(false, 3, "12155550112", 1), "unsupported_credential"},
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
		c := w.carrier(name, k.change)
		if r := v.Verify(t.Context(), []string{c.sign(c.claim("A"))}, caller, called); told(r) != k.want {
			t.Errorf("%s: %s (%v), want %s", name, told(r), r.Failure, k.want)
		}
	}
}

func TestOneGoodSignatureIsEnough(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v, c := w.verifier(), w.carrier("/c.pem", nil)
	bad := c.claim("A")
	bad.payload["iat"] = 1
	if got := told(v.Verify(t.Context(), []string{"nonsense", c.sign(bad), c.sign(c.claim("B"))}, caller, called)); got != "passed B" {
		t.Errorf("the third is good: %s", got)
	}
	if got := told(v.Verify(t.Context(), []string{c.sign(bad), "nonsense"}, caller, called)); got != "stale_date" {
		t.Errorf("none is good: %s", got)
	}
	if r := v.Verify(t.Context(), nil, caller, called); r.Failure.Code != 428 || r.Verstat() != "No-TN-Validation" {
		t.Errorf("there is none: %+v", r.Failure)
	}
	if r := v.Verify(t.Context(), []string{c.sign(c.claim("A"))}, "anonymous", called); told(r) != "caller_withheld" || r.Refuted() {
		t.Errorf("who calls is not told: %+v", r.Failure)
	}
}

func TestCertificatesAreKeptForAnHourAndFetchedAgainBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v, first := w.verifier(), w.carrier("/c.pem", nil)
	verify := func(c carrier) string {
		return told(v.Verify(t.Context(), []string{c.sign(c.claim("A"))}, caller, called))
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
	w.pass(45 * time.Minute)
	is(first, "passed A", 1)
	second := w.carrier("/c.pem", nil) // another key
	w.pass(6 * time.Minute)
	until("the new one is fetched while the old one is used", func() bool { return verify(second) == "passed A" })
	w.put("/c.pem", nil)
	w.pass(51 * time.Minute)
	until("it is asked for again", func() bool { _ = verify(second); return w.fetched.Load() == 3 })
	is(second, "passed A", 3) // what came is no good: the old one goes on
	w.pass(10 * time.Minute)
	is(second, "bad_identity_info", 4)
	third := w.carrier("/c.pem", nil)
	is(third, "bad_identity_info", 4)
	w.pass(61 * time.Second)
	is(third, "passed A", 5)
}

func TestALateCertificateIsThereForTheNextCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.carrier("/c.pem", nil)
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
		if r := v.Verify(t.Context(), []string{header}, caller, called); told(r) != "certificate_pending" || r.Verstat() != "No-TN-Validation" {
			t.Fatalf("%+v", r)
		}
	}
	close(let)
	for deadline := time.Now().Add(10 * time.Second); ; {
		got := told(v.Verify(t.Context(), []string{header}, caller, called))
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
