package digest

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"soniq/internal/protocol/sip/sipmsg"
)

// Digest authentication, client side (RFC 7616, RFC 3261 §22).

// Credentials hold a digest user name and password.
type Credentials struct {
	Username, Password string
}

// Client answers the digest challenges to the requests of one leg or registration (RFC 7616, RFC 3261 §22).
// Known challenges are answered in later requests without being asked.
type Client struct {
	Credentials Credentials
	Pins        *RealmPins // realms that the credentials answer
	Host        string     // of the peer that the credentials are for: a key of Pins
	Realms      []string   // further realms that requests inside a dialog answer, of an earlier process
	challenges  []*challenge
}

// maxChallenges bounds the realms that one digestClient answers.
const maxChallenges = 8

// challenge is one challenge of a 401 or 407.
type challenge struct {
	proxy                bool // of a 407
	realm, nonce, opaque string
	alg                  Algorithm
	qop                  string // auth, auth-int, or none
	stale                bool
	count                uint32 // number of uses of the nonce
}

// AcceptInitial stores the challenges of a response to a REGISTER or to an INVITE outside dialogs. answered holds the
// realms that this request has already tried. It returns false if a retry is pointless: the same realm refused fresh
// credentials, or no realm is one that they are for.
func (k *Client) AcceptInitial(m *sipmsg.Message, method string, answered *[]string) bool {
	if k.Credentials.Username == "" {
		return false
	}
	demands := readChallenges(m)
	if k.accept(demands, k.Pins.learn(method, k.Host, k.Credentials, realmsOf(demands)), answered) {
		return true
	}
	if method == "REGISTER" {
		k.Pins.forget(pinKeyOf(method, k.Host, k.Credentials))
	}
	return false
}

// AcceptInDialog is AcceptInitial for a request inside a dialog. The far end of the call may be anybody, so only realms
// that challenged the INVITE or the REGISTER of the same credentials are answered.
func (k *Client) AcceptInDialog(m *sipmsg.Message, answered *[]string) bool {
	return k.Credentials.Username != "" && k.accept(readChallenges(m), k.KnownRealms(), answered)
}

// KnownRealms returns the realms that requests inside a dialog answer.
func (k *Client) KnownRealms() []string {
	known := append(k.Pins.of(k.Host, k.Credentials), k.Realms...)
	known = append(known, realmsOf(k.challenges)...)
	slices.Sort(known)
	return slices.Compact(known)
}

func realmsOf(all []*challenge) (realms []string) {
	for _, d := range all {
		realms = append(realms, strings.Clone(d.realm))
	}
	return realms
}

// accept stores the challenges of allowed realms. It returns false if a retry is pointless.
func (k *Client) accept(demands []*challenge, allowed []string, answered *[]string) bool {
	if len(*answered) >= maxChallenges {
		return false
	}
	demands = slices.DeleteFunc(demands, func(d *challenge) bool { return !slices.Contains(allowed, d.realm) })
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

func (d *challenge) realmKey() string { return strconv.FormatBool(d.proxy) + d.realm }

// remember replaces the stored challenge of a realm.
func (k *Client) remember(d *challenge) {
	d.realm, d.nonce, d.opaque = strings.Clone(d.realm), strings.Clone(d.nonce), strings.Clone(d.opaque)
	i := slices.IndexFunc(k.challenges, func(old *challenge) bool { return old.proxy == d.proxy && old.realm == d.realm })
	switch {
	case i >= 0:
		k.challenges[i] = d
	case len(k.challenges) < maxChallenges:
		k.challenges = append(k.challenges, d)
	}
}

// AuthorizationFields returns the header lines for a request.
func (k *Client) AuthorizationFields(method, uri string, body []byte) string {
	var b strings.Builder
	for _, d := range k.challenges {
		if d.proxy {
			b.WriteString("Proxy-")
		}
		b.WriteString("Authorization: " + d.authorizationValue(k.Credentials, method, uri, body) + "\r\n")
	}
	return b.String()
}

// readChallenges returns the challenges that can be answered, for each realm the strongest (RFC 8760 §2.4).
func readChallenges(m *sipmsg.Message) (all []*challenge) {
	for i := range m.Fields {
		kind := m.Fields[i].Kind
		if kind != sipmsg.FieldWWWAuthenticate && kind != sipmsg.FieldProxyAuthenticate {
			continue
		}
		d, usable := parseChallenge(m.Fields[i].Value)
		d.proxy = kind == sipmsg.FieldProxyAuthenticate
		if !usable || len(all) >= maxChallenges {
			continue
		}
		same := slices.IndexFunc(all, func(o *challenge) bool { return o.realmKey() == d.realmKey() })
		switch {
		case same < 0:
			all = append(all, &d)
		case all[same].alg == algMD5 && d.alg == algSHA256:
			all[same] = &d
		}
	}
	return all
}

func parseChallenge(value string) (challenge, bool) {
	d := challenge{alg: algMD5}
	scheme, rest := sipmsg.CutSpace(value)
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
			d.alg = Algorithm(strings.ToUpper(v))
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
func (d *challenge) authorizationValue(c Credentials, method, uri string, body []byte) string {
	b := append([]byte("Digest username="), sipmsg.AppendQuoted(nil, c.Username)...)
	b = sipmsg.AppendQuoted(append(b, ", realm="...), d.realm)
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
	return sipmsg.SanitizeHeader(string(b))
}

// nonceCountText formats a nonce count as 8 hex digits.
func nonceCountText(n uint32) string { return string(sipmsg.AppendHex(nil, uint64(n))[8:]) }

func newCnonce() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
