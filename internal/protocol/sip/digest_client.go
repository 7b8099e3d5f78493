package sip

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// Digest authentication, client side (RFC 7616, RFC 3261 §22).

// digestClient answers the digest challenges to the requests of one leg or registration (RFC 7616, RFC 3261 §22).
// Known challenges are answered in later requests without being asked.
type digestClient struct {
	creds      Credentials
	challenges []*digestChallenge
}

// maxChallenges bounds the realms that one digestClient answers.
const maxChallenges = 8

// digestChallenge is one challenge of a 401 or 407.
type digestChallenge struct {
	proxy                bool // of a 407
	realm, nonce, opaque string
	alg                  algorithm
	qop                  string // auth, auth-int, or none
	stale                bool
	count                uint32 // number of uses of the nonce
}

// acceptChallenges stores the challenges of a response. answered holds the realms that this request has already
// tried. It returns false if a retry is pointless: the same realm refused fresh credentials.
func (k *digestClient) acceptChallenges(m *message, answered *[]string) bool {
	if k.creds.Username == "" || len(*answered) >= maxChallenges {
		return false
	}
	demands := readChallenges(m)
	for _, d := range demands {
		if slices.Contains(*answered, d.realmKey()) && !d.stale {
			return false
		}
	}
	for _, d := range demands {
		*answered = append(*answered, d.realmKey())
		k.remember(d)
	}
	return len(demands) > 0
}

func (d *digestChallenge) realmKey() string { return strconv.FormatBool(d.proxy) + d.realm }

// remember replaces the stored challenge of a realm.
func (k *digestClient) remember(d *digestChallenge) {
	d.realm, d.nonce, d.opaque = strings.Clone(d.realm), strings.Clone(d.nonce), strings.Clone(d.opaque)
	i := slices.IndexFunc(k.challenges, func(old *digestChallenge) bool { return old.proxy == d.proxy && old.realm == d.realm })
	switch {
	case i >= 0:
		k.challenges[i] = d
	case len(k.challenges) < maxChallenges:
		k.challenges = append(k.challenges, d)
	}
}

// authorizationFields returns the header lines for a request.
func (k *digestClient) authorizationFields(method, uri string, body []byte) string {
	var b strings.Builder
	for _, d := range k.challenges {
		if d.proxy {
			b.WriteString("Proxy-")
		}
		b.WriteString("Authorization: " + d.authorizationValue(k.creds, method, uri, body) + "\r\n")
	}
	return b.String()
}

// readChallenges returns the challenges that can be answered, for each realm the strongest (RFC 8760 §2.4).
func readChallenges(m *message) (all []*digestChallenge) {
	for i := range m.fields {
		kind := m.fields[i].kind
		if kind != fWWWAuthenticate && kind != fProxyAuthenticate {
			continue
		}
		d, usable := parseChallenge(m.fields[i].value)
		d.proxy = kind == fProxyAuthenticate
		if !usable || len(all) >= maxChallenges {
			continue
		}
		same := slices.IndexFunc(all, func(o *digestChallenge) bool { return o.realmKey() == d.realmKey() })
		switch {
		case same < 0:
			all = append(all, &d)
		case all[same].alg == algMD5 && d.alg == algSHA256:
			all[same] = &d
		}
	}
	return all
}

func parseChallenge(value string) (digestChallenge, bool) {
	d := digestChallenge{alg: algMD5}
	scheme, rest, _ := strings.Cut(value, " ")
	usable := strings.EqualFold(scheme, "Digest")
	forEachAuthParam(rest, func(name, v string) {
		switch strings.ToLower(name) {
		case "realm":
			d.realm = v
		case "nonce":
			d.nonce = v
		case "opaque":
			d.opaque = v
		case "stale":
			d.stale = strings.EqualFold(v, "true")
		case "qop":
			d.qop = chooseQOP(v)
			usable = usable && d.qop != ""
		case "algorithm":
			d.alg = algorithm(strings.ToUpper(v))
			usable = usable && (d.alg == algMD5 || d.alg == algSHA256)
		}
	})
	return d, usable && d.nonce != ""
}

// chooseQOP chooses from a qop list. It prefers auth to auth-int.
func chooseQOP(list string) (qop string) {
	for _, q := range strings.Split(list, ",") {
		switch q = strings.ToLower(strings.TrimSpace(q)); {
		case q == "auth", q == "auth-int" && qop == "":
			qop = q
		}
	}
	return qop
}

// authorizationValue computes the credentials (RFC 7616 §3.4).
func (d *digestChallenge) authorizationValue(c Credentials, method, uri string, body []byte) string {
	b := append([]byte("Digest username="), appendQuoted(nil, c.Username)...)
	b = appendQuoted(append(b, ", realm="...), d.realm)
	b = append(append(append(b, `, nonce="`...), d.nonce...), `", uri="`...)
	b = append(append(append(b, uri...), `", algorithm=`...), d.alg...)
	parts := []string{d.alg.sum(c.Username, d.realm, c.Password), d.nonce}
	if d.qop != "" {
		d.count++
		nc, cnonce := nonceCountText(d.count), newCnonce()
		b = append(b, `, qop=`+d.qop+`, nc=`+nc+`, cnonce="`+cnonce+`"`...)
		parts = append(parts, nc, cnonce, d.qop)
	}
	ha2 := []string{method, uri}
	if d.qop == "auth-int" {
		ha2 = append(ha2, d.alg.sum(string(body)))
	}
	response := d.alg.sum(append(parts, d.alg.sum(ha2...))...)
	b = append(append(append(b, `, response="`...), response...), '"')
	if d.opaque != "" {
		b = append(append(append(b, `, opaque="`...), d.opaque...), '"')
	}
	return sanitizeHeader(string(b))
}

// nonceCountText formats a nonce count as 8 hex digits.
func nonceCountText(n uint32) string { return string(appendHex(nil, uint64(n))[8:]) }

func newCnonce() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
