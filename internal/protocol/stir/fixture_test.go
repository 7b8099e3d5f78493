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
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"soniq/internal/protocol/stir"
)

const caller, called = "+12155550112", "+12025550143"

// fixture has an authority, carriers with certificates that it signs, and a server for the certificates.
type fixture struct {
	t         testing.TB
	authority *x509.Certificate
	signer    *ecdsa.PrivateKey
	server    *httptest.Server
	fetched   atomic.Int64

	mu    sync.Mutex // guards files and clock
	files map[string][]byte
	clock time.Time
}

func newFixture(t testing.TB) *fixture {
	w := &fixture{t: t, signer: newKey(t), files: map[string][]byte{}, clock: time.Now()}
	w.authority = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotBefore: w.clock.Add(-time.Hour),
		NotAfter: w.clock.Add(48 * time.Hour)}
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

func (w *fixture) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock
}

func (w *fixture) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock = w.clock.Add(d)
}

// newVerifier returns a verifier that trusts the authority.
func (w *fixture) newVerifier() *stir.Verifier {
	roots := x509.NewCertPool()
	roots.AddCert(w.authority)
	v := stir.New(stir.Config{Roots: roots, Client: w.server.Client(), Now: w.now, Wait: 10 * time.Second})
	w.t.Cleanup(v.Close)
	return v
}

// carrier signs calls.
type carrier struct {
	w       *fixture
	address string // of its certificate
	key     *ecdsa.PrivateKey
}

// newCarrier creates a carrier. change modifies its certificate before it is signed.
func (w *fixture) newCarrier(path string, change func(*x509.Certificate)) carrier {
	w.t.Helper()
	c := carrier{w, w.server.URL + path, newKey(w.t)}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "SHAKEN 1234"},
		KeyUsage: x509.KeyUsageDigitalSignature, NotBefore: w.authority.NotBefore, NotAfter: w.authority.NotAfter,
		BasicConstraintsValid: true}
	if change != nil {
		change(leaf)
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, w.authority, &c.key.PublicKey, w.signer)
	if err != nil {
		w.t.Fatal(err)
	}
	w.setFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return c
}

func (w *fixture) setFile(path string, file []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.files[path] = file
}

// authorizedFor returns a change that adds a TNAuthList extension. The entries are tag, start and count; count is 1
// for a single number.
func authorizedFor(critical bool, entries ...any) func(*x509.Certificate) {
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
		c.ExtraExtensions = append(c.ExtraExtensions, pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 26},
			Critical: critical, Value: der})
	}
}

// claim is the content that a carrier signs.
type claim struct {
	header, payload map[string]any
	params          string // of the Identity header; "" for the correct ones
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

// resultText returns a result as one word.
func resultText(r stir.Result) string {
	if r.Failure != nil {
		return r.Failure.Reason
	}
	return "passed " + r.Attestation
}
