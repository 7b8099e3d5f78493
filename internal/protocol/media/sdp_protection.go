package media

import (
	"encoding/hex"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Limits on the attributes that are kept of a body.
const (
	maxFingerprints = 8
	maxCandidates   = 16
	maxICEString    = 256 // RFC 8839 §5.4
)

// protection holds the attributes of a body for media encryption (SDES, DTLS) and for ICE.
type protection struct {
	cryptos      []cryptoAttribute // RFC 4568
	fingerprints []fingerprint
	setup        setup
	ufrag, pwd   string
	candidates   []candidate
	lite         bool // RFC 8445 §2.5
	mux          bool // RFC 5761
	bundle       bool // RFC 9143
}

func (p *protection) same(o *protection) bool {
	return slices.Equal(p.cryptos, o.cryptos) && slices.Equal(p.fingerprints, o.fingerprints) && p.setup == o.setup &&
		p.ufrag == o.ufrag && p.pwd == o.pwd && slices.Equal(p.candidates, o.candidates) && p.lite == o.lite && p.mux == o.mux && p.bundle == o.bundle
}

// A fingerprint is the hash of a certificate (RFC 8122 §5).
type fingerprint struct {
	hash  string // sha-256, sha-384 or sha-512
	value string // raw bytes
}

// setup is the DTLS role that a side proposes (RFC 4145 §4, RFC 5763 §5).
type setup uint8

const (
	setupNone setup = iota
	setupActpass
	setupActive
	setupPassive
)

var setupNames = [...]string{"", "actpass", "active", "passive"}

// String returns the value of the attribute.
func (s setup) String() string { return setupNames[s] }

// A candidate is a possible address of the other side (RFC 8839 §5.1).
type candidate struct {
	addr     netip.AddrPort
	priority uint32
}

// attribute parses one attribute of a session or media section.
func (p *protection) attribute(name, value string) {
	value = strings.TrimSpace(value)
	switch name {
	case "crypto":
		if c, ok := parseCrypto(value); ok && len(p.cryptos) < maxCryptos {
			p.cryptos = append(p.cryptos, c)
		}
	case "fingerprint":
		if f, ok := parseFingerprint(value); ok && len(p.fingerprints) < maxFingerprints {
			p.fingerprints = append(p.fingerprints, f)
		}
	case "setup":
		if i := slices.Index(setupNames[1:], value); i >= 0 {
			p.setup = setup(i + 1)
		}
	case "rtcp-mux":
		p.mux = true
	case "group":
		p.bundle = p.bundle || strings.HasPrefix(value, "BUNDLE")
	default:
		p.iceAttribute(name, value)
	}
}

func (p *protection) iceAttribute(name, value string) {
	switch name {
	case "ice-lite":
		p.lite = true
	case "ice-ufrag":
		p.ufrag = iceString(value)
	case "ice-pwd":
		p.pwd = iceString(value)
	case "candidate":
		if c, ok := parseCandidate(value); ok && len(p.candidates) < maxCandidates {
			p.candidates = append(p.candidates, c)
		}
	}
}

// iceString returns v if it is a valid user fragment or password (RFC 8839 §5.4), else "".
func iceString(v string) string {
	for i := range len(v) {
		c := v[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/') {
			return ""
		}
	}
	if len(v) > maxICEString {
		return ""
	}
	return v
}

// inherit takes values from the session level that the media section omits.
func (p *protection) inherit(top *protection) {
	if len(p.fingerprints) == 0 {
		p.fingerprints = top.fingerprints
	}
	if p.setup == setupNone {
		p.setup = top.setup
	}
	if p.ufrag == "" {
		p.ufrag = top.ufrag
	}
	if p.pwd == "" {
		p.pwd = top.pwd
	}
	p.lite, p.bundle = p.lite || top.lite, top.bundle
}

// parseFingerprint parses <hash> <hex bytes with colons>. It returns false for weak hashes.
func parseFingerprint(v string) (fingerprint, bool) {
	name, digits, _ := strings.Cut(v, " ")
	f := fingerprint{hash: strings.ToLower(name)}
	h, ok := f.algorithm()
	if !ok || len(digits) > 200 {
		return fingerprint{}, false
	}
	raw, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(digits), ":", ""))
	f.value = string(raw)
	return f, err == nil && len(raw) == h.Size()
}

// parseCandidate parses <foundation> <component> udp <priority> <address> <port> typ … of the RTP component. Host
// names (RFC 8828's .local) are not resolved; such peers are found by their own connectivity checks.
func parseCandidate(v string) (candidate, bool) {
	f := strings.Fields(v)
	if len(f) < 8 || f[1] != "1" || !strings.EqualFold(f[2], "udp") || f[6] != "typ" {
		return candidate{}, false
	}
	priority, ok := number(f[3], 1<<31-1)
	port, ok2 := number(f[5], 65535)
	addr, err := netip.ParseAddr(f[4])
	if !ok || !ok2 || port == 0 || err != nil || addr.IsUnspecified() || addr.IsMulticast() {
		return candidate{}, false
	}
	return candidate{netip.AddrPortFrom(addr.Unmap().WithZone(""), uint16(port)), uint32(priority)}, true
}

// number parses a decimal number of at most max.
func number(s string, max uint64) (uint64, bool) {
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil && n <= max
}

// security returns the protection of audio on a line of this protocol. It returns false if required attributes are
// missing or unsupported.
func (p *protection) security(proto string) (Security, bool) {
	switch proto {
	case "RTP/AVP", "RTP/AVPF":
		if len(p.cryptos) > 0 { // phones that prefer SRTP send this, although no RFC defines it
			return SDESPreferred, true
		}
		return Plain, true
	case "RTP/SAVP", "RTP/SAVPF":
		if len(p.cryptos) > 0 {
			return SDESRequired, true
		}
		return WebRTC, len(p.fingerprints) > 0
	case "UDP/TLS/RTP/SAVP", "UDP/TLS/RTP/SAVPF": // RFC 5764 §8
		return WebRTC, len(p.fingerprints) > 0
	}
	return Plain, false
}
