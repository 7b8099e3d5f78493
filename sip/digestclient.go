package sip

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

// demand is one challenge of a 401 or 407.
type demand struct {
	realm, nonce, opaque string
	alg                  algorithm
	qop                  bool
}

// answerChallenge writes the header line that answers a 401 or 407: the
// strongest challenge we can meet (RFC 8760 §2.4). ok is false without
// credentials or when no challenge is usable.
func answerChallenge(m *message, c Credentials, method, uri string) (line string, ok bool) {
	if c.Username == "" {
		return "", false
	}
	kind, name := fWWWAuthenticate, "Authorization"
	if m.status == 407 {
		kind, name = fProxyAuthenticate, "Proxy-Authorization"
	}
	var best demand
	for i := range m.fields {
		if m.fields[i].kind != kind {
			continue
		}
		if d, usable := readDemand(m.fields[i].value); usable && (!ok || d.alg == algSHA256 && best.alg == algMD5) {
			best, ok = d, true
		}
	}
	if !ok {
		return "", false
	}
	return name + ": " + best.answer(c, method, uri) + "\r\n", true
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
		case "qop":
			for _, q := range strings.Split(v, ",") {
				d.qop = d.qop || strings.TrimSpace(q) == "auth"
			}
			usable = usable && d.qop
		case "algorithm":
			d.alg = algorithm(strings.ToUpper(v))
			usable = usable && (d.alg == algMD5 || d.alg == algSHA256)
		}
	})
	return d, usable && d.nonce != ""
}

// answer computes the response (RFC 7616 §3.4).
func (d *demand) answer(c Credentials, method, uri string) string {
	l := login{nonce: d.nonce, uri: uri}
	b := append([]byte("Digest username="), appendQuoted(nil, c.Username)...)
	b = appendQuoted(append(b, ", realm="...), d.realm)
	b = append(append(append(b, `, nonce="`...), d.nonce...), `", uri="`...)
	b = append(append(append(b, uri...), `", algorithm=`...), d.alg...)
	if d.qop {
		l.qop, l.nc, l.cnonce = "auth", "00000001", newCnonce()
		b = append(append(append(b, `, qop=auth, nc=00000001, cnonce="`...), l.cnonce...), '"')
	}
	response := l.expected(d.alg, d.alg.sum(c.Username, d.realm, c.Password), method)
	b = append(append(append(b, `, response="`...), response...), '"')
	if d.opaque != "" {
		b = append(append(append(b, `, opaque="`...), d.opaque...), '"')
	}
	return clean(string(b))
}

func newCnonce() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
