package sdp

import (
	stdcrypto "crypto"
	_ "crypto/sha256" // for stdcrypto.SHA256
	_ "crypto/sha512" // for stdcrypto.SHA384 and SHA512
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Limits on the attributes that are kept of a body.
const (
	maxFingerprints = 8
	MaxCandidates   = 16
	maxICEString    = 256 // RFC 8839 §5.4
)

// protection holds the attributes of a body for media encryption (SDES, DTLS) and for ICE.
type protection struct {
	cryptos      []cryptoAttribute // RFC 4568
	fingerprints []Fingerprint
	setup        setup
	ufrag, pwd   string
	candidates   []Candidate
	lite         bool // RFC 8445 §2.5
	mux          bool // RFC 5761
	bundle       bool // RFC 9143
}

func (p *protection) same(o *protection) bool {
	return slices.Equal(p.cryptos, o.cryptos) && slices.Equal(p.fingerprints, o.fingerprints) && p.setup == o.setup &&
		p.ufrag == o.ufrag && p.pwd == o.pwd && slices.Equal(p.candidates, o.candidates) && p.lite == o.lite && p.mux == o.mux &&
		p.bundle == o.bundle
}

// A Fingerprint is the hash of a certificate (RFC 8122 §5).
type Fingerprint struct {
	Hash  string // sha-256, sha-384 or sha-512
	Value string // raw bytes
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

// A Candidate is a possible address of the other side (RFC 8839 §5.1).
type Candidate struct {
	Addr     netip.AddrPort
	Priority uint32
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
		if c, ok := parseCandidate(value); ok && len(p.candidates) < MaxCandidates {
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
func parseFingerprint(v string) (Fingerprint, bool) {
	name, digits, _ := strings.Cut(v, " ")
	f := Fingerprint{Hash: strings.ToLower(name)}
	h, ok := f.algorithm()
	if !ok || len(digits) > 200 {
		return Fingerprint{}, false
	}
	raw, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(digits), ":", ""))
	f.Value = string(raw)
	return f, err == nil && len(raw) == h.Size()
}

// parseCandidate parses <foundation> <component> udp <priority> <address> <port> typ … of the RTP component. Host
// names (RFC 8828's .local) are not resolved; such peers are found by their own connectivity checks.
func parseCandidate(v string) (Candidate, bool) {
	f := strings.Fields(v)
	if len(f) < 8 || f[1] != "1" || !strings.EqualFold(f[2], "udp") || f[6] != "typ" {
		return Candidate{}, false
	}
	priority, ok := number(f[3], 1<<31-1)
	port, ok2 := number(f[5], 65535)
	addr, err := netip.ParseAddr(f[4])
	if !ok || !ok2 || port == 0 || err != nil || addr.IsUnspecified() || addr.IsMulticast() {
		return Candidate{}, false
	}
	return Candidate{netip.AddrPortFrom(addr.Unmap().WithZone(""), uint16(port)), uint32(priority)}, true
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

func (f Fingerprint) algorithm() (stdcrypto.Hash, bool) {
	switch f.Hash {
	case "sha-256":
		return stdcrypto.SHA256, true
	case "sha-384":
		return stdcrypto.SHA384, true
	case "sha-512":
		return stdcrypto.SHA512, true
	}
	return 0, false
}

// Digest returns the hash of a certificate by the fingerprint's algorithm, or "" if the algorithm is unknown.
func (f Fingerprint) Digest(der []byte) string {
	a, ok := f.algorithm()
	if !ok {
		return ""
	}
	h := a.New()
	h.Write(der)
	return string(h.Sum(nil))
}

// FormatFingerprint returns bytes as upper-case hex with colons, as a=fingerprint has them.
func FormatFingerprint(b string) string {
	var s strings.Builder
	for i := range len(b) {
		if i > 0 {
			s.WriteByte(':')
		}
		fmt.Fprintf(&s, "%02X", b[i])
	}
	return s.String()
}
