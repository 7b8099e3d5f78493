package sip

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

// nameAddr is a name-addr or addr-spec with its parameters, not decoded yet.
type nameAddr struct {
	display string // as written, with quotes
	uri     string
	params  string // with the leading semicolon
}

var errAddress = errors.New("malformed address")

// readAddress parses the value of From, To, Contact and similar fields (RFC 3261 §20.10).
func readAddress(s string) (nameAddr, error) {
	c := cursor{s: s}
	c.space()
	a := nameAddr{}
	if !c.done() && c.s[c.i] == '"' {
		q, ok := c.quoted()
		if !ok {
			return a, errAddress
		}
		a.display = q
		c.space()
		if c.done() || c.s[c.i] != '<' {
			return a, errAddress
		}
	} else if lt := strings.IndexByte(s, '<'); lt >= 0 {
		a.display = strings.Trim(s[:lt], " \t")
		if !isTokens(a.display) {
			return a, errAddress
		}
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

func (a *nameAddr) bracketed(c *cursor) error {
	c.i++
	a.uri = c.until(">")
	if c.done() {
		return errAddress
	}
	c.i++
	a.params = strings.Trim(c.s[c.i:], " \t")
	if strings.ContainsAny(a.uri, " \t<\"") || !hasScheme(a.uri) {
		return errAddress
	}
	return checkParams(a.params)
}

// bare parses an addr-spec without brackets. Parameters belong to the field, and a comma, question mark or semicolon
// inside the URI is not allowed (RFC 3261 §20).
func (a *nameAddr) bare(c *cursor) error {
	a.uri = strings.TrimRight(c.until(";"), " \t")
	a.params = strings.Trim(c.s[c.i:], " \t")
	if a.uri == "*" {
		return checkParams(a.params)
	}
	if strings.ContainsAny(a.uri, " \t?,\"") || !hasScheme(a.uri) {
		return errAddress
	}
	return checkParams(a.params)
}

func hasScheme(s string) bool {
	i := strings.IndexByte(s, ':')
	return i > 0 && isScheme(s[:i]) && i+1 < len(s)
}

// address decodes a nameAddr. A URI that cannot be parsed is left empty.
func (a nameAddr) address() Address {
	u, _ := ParseURI(a.uri)
	return Address{Display: unquote(a.display), URI: u}
}

// append writes the address as a name-addr.
func (a Address) append(b []byte) []byte {
	if a.Display != "" {
		b = append(appendQuoted(b, a.Display), ' ')
	}
	return append(a.URI.append(append(b, '<')), '>')
}

// appendQuoted writes a quoted string; control characters become spaces.
func appendQuoted(b []byte, s string) []byte {
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
