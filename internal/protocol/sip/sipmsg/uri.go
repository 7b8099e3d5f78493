package sipmsg

import (
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// SIP, SIPS and tel URIs: parsing, escaping, writing (RFC 3261 §19.1).

// URI is a parsed SIP, SIPS or tel URI. For other schemes User holds everything after the scheme. User is unescaped.
// Params keeps its escapes and has no leading semicolon.
type URI struct {
	Scheme string // lower case; empty means "sip"
	User   string
	Host   string // IPv6 without brackets
	Port   int    // 0 if not given
	Params string
	query  string // headers of the URI (RFC 3261 §19.1.1), escaped
}

var ErrURI = errors.New("malformed URI")

// ParseURI parses a URI. Characters that are not allowed in a request line are an error.
func ParseURI(s string) (URI, error) {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c <= ' ' || c == '<' || c == '>' || c == '"' || c == 0x7f {
			return URI{}, ErrURI
		}
	}
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok || rest == "" || !isScheme(scheme) {
		return URI{}, ErrURI
	}
	u := URI{Scheme: lower(scheme)}
	if !u.IsSIP() {
		u.User, u.Params, _ = strings.Cut(rest, ";")
		return u, nil
	}
	if user, host, ok := strings.Cut(rest, "@"); ok {
		user, _, _ = strings.Cut(user, ":") // the password is dropped
		u.User, rest = Unescape(user), host
	}
	rest, u.query, _ = strings.Cut(rest, "?")
	hostport, params, _ := strings.Cut(rest, ";")
	u.Params = params
	if u.Host, u.Port, ok = SplitHostPort(hostport); !ok {
		return URI{}, ErrURI
	}
	return u, nil
}

func isScheme(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i] | 0x20
		if c < 'a' || c > 'z' {
			if i == 0 || !(s[i] >= '0' && s[i] <= '9' || s[i] == '+' || s[i] == '-' || s[i] == '.') {
				return false
			}
		}
	}
	return s != ""
}

func lower(s string) string {
	switch s {
	case "sip", "sips", "tel":
		return s
	}
	return strings.ToLower(s)
}

func (u URI) IsSIP() bool { return u.Scheme == "sip" || u.Scheme == "sips" || u.Scheme == "" }

// SplitHostPort parses host[:port]. port is 0 if not given.
func SplitHostPort(s string) (host string, port int, ok bool) {
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return "", 0, false
		}
		if a, err := netip.ParseAddr(s[1:end]); err != nil || !a.Is6() {
			return "", 0, false
		}
		host, s = s[1:end], s[end+1:]
	} else {
		end := strings.IndexByte(s, ':')
		if end < 0 {
			end = len(s)
		}
		host, s = s[:end], s[end:]
		if !isHostname(host) {
			return "", 0, false
		}
	}
	if s == "" {
		return host, 0, true
	}
	port, err := strconv.Atoi(s[1:])
	if s[0] != ':' || err != nil || port < 1 || port > 65535 {
		return "", 0, false
	}
	return host, port, true
}

func isHostname(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '.' || c == '-' || c == '_') {
			return false
		}
	}
	return s != ""
}

// Unescape decodes %HH. An invalid escape is kept as it is.
func Unescape(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if v, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(v))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// AppendUser writes a user part and escapes the characters that RFC 3261 §25.1 does not allow.
func AppendUser(b []byte, user string) []byte {
	const hex = "0123456789ABCDEF"
	for i := 0; i < len(user); i++ {
		c := user[i]
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
			c != 0 && strings.IndexByte("-_.!~*'()&=+$,;?/", c) >= 0 {
			b = append(b, c)
			continue
		}
		b = append(b, '%', hex[c>>4], hex[c&15])
	}
	return b
}

// Headers returns the headers of the URI without the question mark, escaped (RFC 3261 §19.1.1).
func (u URI) Headers() string { return u.query }

// AppendTo writes the URI without its headers.
func (u URI) AppendTo(b []byte) []byte {
	if u.Scheme == "" {
		b = append(b, "sip"...)
	}
	b = append(append(b, u.Scheme...), ':')
	if !u.IsSIP() {
		b = appendOpaque(b, u.User)
	} else {
		if u.User != "" {
			b = append(AppendUser(b, u.User), '@')
		}
		b = appendHostPort(b, u.Host, u.Port)
	}
	if u.Params != "" {
		b = append(append(b, ';'), u.Params...)
	}
	return b
}

// appendOpaque writes the part behind another scheme and escapes only the characters that end a URI.
func appendOpaque(b []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	for i := 0; i < len(s); i++ {
		if c := s[i]; c <= ' ' || c == '<' || c == '>' || c == '"' || c == 0x7f {
			b = append(b, '%', hex[c>>4], hex[c&15])
			continue
		}
		b = append(b, s[i])
	}
	return b
}

func appendHostPort(b []byte, host string, port int) []byte {
	if strings.IndexByte(host, ':') >= 0 {
		b = append(append(append(b, '['), host...), ']')
	} else {
		b = append(b, host...)
	}
	if port > 0 {
		b = strconv.AppendInt(append(b, ':'), int64(port), 10)
	}
	return b
}

// String returns the URI as text, without its headers.
func (u URI) String() string { return string(u.AppendTo(nil)) }

// Param returns a URI parameter. ok distinguishes an empty parameter from a missing one.
func (u URI) Param(name string) (string, bool) {
	for rest := u.Params; rest != ""; {
		var p string
		p, rest, _ = strings.Cut(rest, ";")
		if n, v, _ := strings.Cut(p, "="); strings.EqualFold(n, name) {
			return Unescape(v), true
		}
	}
	return "", false
}

// comparedParams names the parameters that differ from a URI without them (RFC 3261 §19.1.4). Others count only if both URIs have them.
var comparedParams = []string{"user", "ttl", "method", "maddr", "transport"}

// Equal reports whether two SIP URIs name the same resource (RFC 3261 §19.1.4): scheme, host and parameters in any case and order, the user
// part unescaped, and a missing port unlike a given one. Headers of the URIs are not compared.
func (u URI) Equal(v URI) bool {
	if !u.IsSIP() || !v.IsSIP() || (u.Scheme == "sips") != (v.Scheme == "sips") || u.User != v.User || u.Port != v.Port ||
		!strings.EqualFold(u.Host, v.Host) {
		return false
	}
	for _, name := range comparedParams {
		_, has := u.Param(name)
		if _, other := v.Param(name); has != other {
			return false
		}
	}
	for p := range strings.SplitSeq(u.Params, ";") {
		name, _, _ := strings.Cut(p, "=")
		value, _ := u.Param(name)
		if other, both := v.Param(name); both && !strings.EqualFold(value, other) {
			return false
		}
	}
	return true
}

// SamePlace reports whether requests for two SIP URIs go to the same user, host and port over the same transport. Parameters that do not
// change where a request goes, such as rinstance, are not compared.
func (u URI) SamePlace(v URI) bool {
	u.Params, v.Params = u.routingParams(), v.routingParams()
	return u.Equal(v)
}

// routingParams returns the parameters of comparedParams.
func (u URI) routingParams() string {
	var kept []string
	for p := range strings.SplitSeq(u.Params, ";") {
		if name, _, _ := strings.Cut(p, "="); slices.ContainsFunc(comparedParams,
			func(c string) bool { return strings.EqualFold(c, name) }) {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, ";")
}

// SameURI reports whether two texts are the same SIP URI, see URI.Equal. Texts that are no SIP URIs must be equal letter by letter.
func SameURI(a, b string) bool {
	if a == b {
		return true
	}
	u, err := ParseURI(a)
	v, other := ParseURI(b)
	return err == nil && other == nil && u.Equal(v)
}

// LiteralAddr returns the address of a URI if its host is an IP address.
func LiteralAddr(u URI) (netip.AddrPort, bool) {
	a, err := netip.ParseAddr(u.Host)
	if err != nil {
		return netip.AddrPort{}, false
	}
	port := u.Port
	if port == 0 {
		port = u.Transport().DefaultPort()
	}
	return netip.AddrPortFrom(a.Unmap(), uint16(port)), true
}
