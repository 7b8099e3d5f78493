package sipmsg

import (
	"errors"
	"strings"
)

// Name-addr: display name, URI and parameters (RFC 3261 §20.10).

// Address is a name-addr: a display name and a URI.
type Address struct {
	Display string
	URI     URI
}

// NameAddr is a name-addr or addr-spec with its parameters, not decoded yet.
type NameAddr struct {
	display string // as written, with quotes
	URI     string
	Params  string // with the leading semicolon
}

var ErrAddress = errors.New("malformed address")

// ReadAddress parses the value of From, To, Contact and similar fields (RFC 3261 §20.10).
func ReadAddress(s string) (NameAddr, error) {
	c := cursor{s: s}
	c.space()
	a := NameAddr{}
	if !c.done() && c.s[c.i] == '"' {
		q, ok := c.quoted()
		if !ok {
			return a, ErrAddress
		}
		a.display = q
		c.space()
		if c.done() || c.s[c.i] != '<' {
			return a, ErrAddress
		}
	} else if lt := strings.IndexByte(s, '<'); lt >= 0 && isTokens(s[:lt]) { // else the bracket may be in a parameter
		a.display = strings.Trim(s[:lt], " \t")
		c.i = lt
	}
	if !c.done() && c.s[c.i] == '<' {
		return a, a.bracketed(&c)
	}
	return a, a.bare(&c)
}

// isTokens reports whether an unquoted display name consists of tokens only.
func isTokens(s string) bool {
	for i := 0; i < len(s); i++ {
		if !tokenByte[s[i]] && s[i] != ' ' && s[i] != '\t' && s[i] < 0x80 {
			return false
		}
	}
	return true
}

func (a *NameAddr) bracketed(c *cursor) error {
	c.i++
	a.URI = c.until(">")
	if c.done() {
		return ErrAddress
	}
	c.i++
	a.Params = strings.Trim(c.s[c.i:], " \t")
	if strings.ContainsAny(a.URI, " \t<\"") || !hasScheme(a.URI) {
		return ErrAddress
	}
	return checkParams(a.Params)
}

// bare parses an addr-spec without brackets. It ends at the first semicolon: parameters belong to the field, and a comma or
// question mark inside the URI is not allowed (RFC 3261 §20).
func (a *NameAddr) bare(c *cursor) error {
	a.URI = strings.TrimRight(c.until(";"), " \t")
	a.Params = strings.Trim(c.s[c.i:], " \t")
	if a.URI == "*" {
		return checkParams(a.Params)
	}
	if strings.ContainsAny(a.URI, " \t?,\"<>") || !hasScheme(a.URI) {
		return ErrAddress
	}
	return checkParams(a.Params)
}

func hasScheme(s string) bool {
	i := strings.IndexByte(s, ':')
	return i > 0 && isScheme(s[:i]) && i+1 < len(s)
}

// Address decodes a NameAddr. A URI that cannot be parsed is left empty. The display name is readable.
func (a NameAddr) Address() Address {
	u, _ := ParseURI(a.URI)
	return Address{Display: Readable(Unquote(a.display)), URI: u}
}

// Readable returns a text of a message as UTF-8 (RFC 3261 §7.1): U+FFFD stands for octets that are not, and for NUL.
func Readable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd")
}

// AppendTo writes the address as a name-addr.
func (a Address) AppendTo(b []byte) []byte {
	if a.Display != "" {
		b = append(AppendQuoted(b, a.Display), ' ')
	}
	return append(a.URI.AppendTo(append(b, '<')), '>')
}

// AppendQuoted writes a quoted string; control characters become spaces.
func AppendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c < ' ' || c == 0x7f:
			b = append(b, ' ')
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
