package stir

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/url"
	"strings"
)

// shaken is the PASSporT type with an attestation (RFC 8588 §3).
const shaken = "shaken"

// Maximum lengths of the header and of the certificate URL.
const (
	maxHeader  = 8 << 10
	maxAddress = 2 << 10
)

// identity is the value of an Identity header (RFC 8224 §4).
type identity struct {
	token string // header.payload.signature
	info  string // URL of the certificate
	alg   string // "" if absent, which means ES256
	ppt   string // ppt; "" if absent
}

// parseIdentity parses the value of an Identity header.
func parseIdentity(header string) (id identity, f *Failure) {
	if len(header) > maxHeader {
		return id, invalid("the Identity header is too long")
	}
	token, rest, _ := strings.Cut(header, ";")
	id.token = strings.TrimSpace(token)
	for rest != "" {
		var name, value string
		var ok bool
		if name, value, rest, ok = parseParameter(rest); !ok {
			return id, invalid("the Identity header is malformed")
		}
		switch strings.ToLower(name) {
		case "info":
			id.info = value
		case "alg":
			id.alg = value
		case "ppt":
			id.ppt = strings.ToLower(value)
		}
	}
	if id.token == "" || id.info == "" {
		return id, invalid("the Identity header has no signature, or does not say where its certificate is")
	}
	return id, nil
}

// parseParameter parses name, name=value, name="value" or name=<value>, up to the next semicolon.
func parseParameter(s string) (name, value, rest string, ok bool) {
	s = strings.TrimLeft(s, " \t")
	end := strings.IndexAny(s, "=;")
	if end < 0 {
		end = len(s)
	}
	name, s = strings.TrimSpace(s[:end]), s[end:]
	if name == "" {
		return "", "", "", false
	}
	if after, given := strings.CutPrefix(s, "="); given {
		if value, s, ok = parseValue(strings.TrimLeft(after, " \t")); !ok {
			return "", "", "", false
		}
	}
	if s = strings.TrimLeft(s, " \t"); s == "" {
		return name, value, "", true
	}
	rest, ok = strings.CutPrefix(s, ";")
	return name, value, rest, ok && strings.TrimSpace(rest) != ""
}

// parseValue parses a value with or without quotes or angle brackets.
func parseValue(s string) (value, rest string, ok bool) {
	switch {
	case strings.HasPrefix(s, "<"):
		return strings.Cut(s[1:], ">")
	case strings.HasPrefix(s, `"`):
		return strings.Cut(s[1:], `"`)
	}
	if end := strings.IndexByte(s, ';'); end >= 0 {
		return strings.TrimSpace(s[:end]), s[end:], true
	}
	return strings.TrimSpace(s), "", true
}

// passport is a decoded PASSporT (RFC 8225).
type passport struct {
	header struct {
		Alg, Typ, PPT, X5U string
		Crit               json.RawMessage
	}
	payload struct {
		Orig   struct{ TN string }
		Dest   struct{ TN []string }
		IAT    int64
		Attest string
		OrigID string
	}
	signed    string
	signature []byte
}

// decodePassport decodes the token and compares it with the parameters of the header.
func (id identity) decodePassport() (*passport, *Failure) {
	parts := strings.Split(id.token, ".")
	if len(parts) != 3 {
		return nil, invalid("the signature is malformed")
	}
	if parts[0] == "" || parts[1] == "" { // RFC 8225 §7
		return nil, invalid("the signature is in the compact form, which is not understood")
	}
	p := &passport{signed: parts[0] + "." + parts[1]}
	var err error
	if p.signature, err = encoding.DecodeString(parts[2]); err != nil || decode(parts[0], &p.header) != nil ||
		decode(parts[1], &p.payload) != nil {
		return nil, invalid("the signature is malformed")
	}
	return p, p.check(id)
}

// encoding is the base64url encoding of tokens (RFC 7515 §2).
var encoding = base64.RawURLEncoding.Strict()

func decode(text string, into any) error {
	b, err := encoding.DecodeString(text)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

func (p *passport) check(id identity) *Failure {
	h := &p.header
	attested := p.payload.Attest == "A" || p.payload.Attest == "B" || p.payload.Attest == "C"
	switch {
	case h.Alg != "ES256" || id.alg != "" && id.alg != h.Alg:
		return invalid("it is not signed with ES256")
	case h.Typ != "passport":
		return invalid("what is signed is not a passport")
	case h.Crit != nil:
		return invalid("it has critical extensions, which are not understood") // RFC 7515 §4.1.11
	case strings.ToLower(h.PPT) != id.ppt:
		return invalid("what is signed is of another type than the Identity header says")
	case h.X5U != id.info:
		return invalid("another certificate is signed than the Identity header names")
	case id.ppt == shaken && !attested:
		return invalid("it has no attestation A, B or C")
	case id.ppt != shaken:
		p.payload.Attest, p.payload.OrigID = "", ""
	}
	if u, err := url.Parse(h.X5U); err != nil || u.Scheme != "https" || u.Hostname() == "" || len(h.X5U) > maxAddress {
		return unreachable("the certificate is not at an https address")
	}
	return nil
}

// signedBy verifies the signature (RFC 7518 §3.4).
func (p *passport) signedBy(key *ecdsa.PublicKey) bool {
	if len(p.signature) != 64 {
		return false
	}
	digest := sha256.Sum256([]byte(p.signed))
	r, s := new(big.Int).SetBytes(p.signature[:32]), new(big.Int).SetBytes(p.signature[32:])
	return ecdsa.Verify(key, digest[:], r, s)
}
