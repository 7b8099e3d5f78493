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
type keyring struct {
	creds Credentials
	known []*demand
}

// maxChallenges bounds the realms that one digestClient answers.
const maxDemands = 8

// digestChallenge is one challenge of a 401 or 407.
type demand struct {
	proxy                bool // of a 407
	realm, nonce, opaque string
	alg                  algorithm
	qop                  string // auth, auth-int, or none
	stale                bool
	count                uint32 // number of uses of the nonce
}

// acceptChallenges stores the challenges of a response. answered holds the realms that this request has already
// tried. It returns false if a retry is pointless: the same realm refused fresh credentials.
func (k *keyring) meet(m *message, answered *[]string) bool {
	if k.creds.Username == "" || len(*answered) >= maxDemands {
		return false
	}
	demands := readDemands(m)
	for _, d := range demands {
		if slices.Contains(*answered, d.name()) && !d.stale {
			return false
		}
	}
	for _, d := range demands {
		*answered = append(*answered, d.name())
		k.learn(d)
	}
	return len(demands) > 0
}

func (d *demand) name() string { return strconv.FormatBool(d.proxy) + d.realm }

// remember replaces the stored challenge of a realm.
func (k *keyring) learn(d *demand) {
	d.realm, d.nonce, d.opaque = strings.Clone(d.realm), strings.Clone(d.nonce), strings.Clone(d.opaque)
	i := slices.IndexFunc(k.known, func(old *demand) bool { return old.proxy == d.proxy && old.realm == d.realm })
	switch {
	case i >= 0:
		k.known[i] = d
	case len(k.known) < maxDemands:
		k.known = append(k.known, d)
	}
}

// authorizationFields returns the header lines for a request.
func (k *keyring) lines(method, uri string, body []byte) string {
	var b strings.Builder
	for _, d := range k.known {
		if d.proxy {
			b.WriteString("Proxy-")
		}
		b.WriteString("Authorization: " + d.answer(k.creds, method, uri, body) + "\r\n")
	}
	return b.String()
}

// readChallenges returns the challenges that can be answered, for each realm the strongest (RFC 8760 §2.4).
func readDemands(m *message) (all []*demand) {
	for i := range m.fields {
		kind := m.fields[i].kind
		if kind != fWWWAuthenticate && kind != fProxyAuthenticate {
			continue
		}
		d, usable := readDemand(m.fields[i].value)
		d.proxy = kind == fProxyAuthenticate
		if !usable || len(all) >= maxDemands {
			continue
		}
		same := slices.IndexFunc(all, func(o *demand) bool { return o.name() == d.name() })
		switch {
		case same < 0:
			all = append(all, &d)
		case all[same].alg == algMD5 && d.alg == algSHA256:
			all[same] = &d
		}
	}
	return all
}

func readDemand(value string) (demand, bool) {
	d := demand{alg: algMD5}
	scheme, rest, _ := strings.Cut(value, " ")
	usable := strings.EqualFold(scheme, "Digest")
	eachParam(rest, func(name, v string) {
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
			d.qop = protection(v)
			usable = usable && d.qop != ""
		case "algorithm":
			d.alg = algorithm(strings.ToUpper(v))
			usable = usable && (d.alg == algMD5 || d.alg == algSHA256)
		}
	})
	return d, usable && d.nonce != ""
}

// chooseQOP chooses from a qop list. It prefers auth to auth-int.
func protection(list string) (qop string) {
	for _, q := range strings.Split(list, ",") {
		switch q = strings.ToLower(strings.TrimSpace(q)); {
		case q == "auth", q == "auth-int" && qop == "":
			qop = q
		}
	}
	return qop
}

// authorizationValue computes the credentials (RFC 7616 §3.4).
func (d *demand) answer(c Credentials, method, uri string, body []byte) string {
	b := append([]byte("Digest username="), appendQuoted(nil, c.Username)...)
	b = appendQuoted(append(b, ", realm="...), d.realm)
	b = append(append(append(b, `, nonce="`...), d.nonce...), `", uri="`...)
	b = append(append(append(b, uri...), `", algorithm=`...), d.alg...)
	parts := []string{d.alg.sum(c.Username, d.realm, c.Password), d.nonce}
	if d.qop != "" {
		d.count++
		nc, cnonce := hex8(d.count), newCnonce()
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
	return clean(string(b))
}

// nonceCountText formats a nonce count as 8 hex digits.
func hex8(n uint32) string { return string(appendHex(nil, uint64(n))[8:]) }

func newCnonce() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
