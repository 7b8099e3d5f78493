package stir

import (
	"strings"
	"testing"
	"time"
)

// FuzzIdentity parses arbitrary headers. An accepted header must name its certificate and keep to the limits.
func FuzzIdentity(f *testing.F) {
	token := encoding.EncodeToString([]byte(`{"alg":"ES256","ppt":"shaken","typ":"passport","x5u":"https://a/b"}`)) + "." +
		encoding.EncodeToString([]byte(`{"attest":"A","dest":{"tn":["2"]},"iat":1,"orig":{"tn":"1"},"origid":"x"}`)) + ".AAAA"
	for _, seed := range []string{
		token + ";info=<https://a/b>;alg=ES256;ppt=shaken", token + `;info=<https://a/b>;ppt="shaken"`, "..AAAA;info=<https://a/b>", token + ";info=<https://a/b",
		token, ";info=<>", "a.b.c;info=x;=;;", token + ` ; info = <https://a/b> ; ppt = "shaken";x`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		id, fault := parseIdentity(header)
		if fault != nil {
			return
		}
		if id.token == "" || id.info == "" || len(header) > maxHeader {
			t.Fatalf("taken: %+v", id)
		}
		p, fault := id.decodePassport()
		if fault != nil {
			return
		}
		if p.header.Alg != "ES256" || p.header.X5U != id.info || !strings.HasPrefix(strings.ToLower(id.info), "https://") || id.ppt == shaken && p.payload.Attest == "" {
			t.Fatalf("taken: %+v", p)
		}
		if p.checkClaims("1", "2", time.Unix(1, 0)) == nil && (canonicalNumber(p.payload.Orig.TN) != "1" || len(p.payload.Dest.TN) == 0) {
			t.Fatalf("fits: %+v", p.payload)
		}
	})
}

// FuzzNumbers parses arbitrary number lists of certificates.
func FuzzNumbers(f *testing.F) {
	f.Add([]byte("\x30\x08\xa0\x06\x16\x041234"), "12155550112")
	f.Add([]byte("\x30\x0f\xa2\x0d\x16\x0b12155550112"), "12155550112")
	f.Add([]byte("\x30\x14\xa1\x12\x30\x10\x16\x0b12155550100\x02\x01\x64"), "12155550112")
	f.Fuzz(func(t *testing.T, der []byte, number string) {
		n, err := parseNumberList(der)
		if err != nil {
			return
		}
		if n.covers(number) && !n.provider && (len(number) > 15 || canonicalNumber(number) == "") {
			t.Fatalf("%+v cover %q", n, number)
		}
	})
}
