package sipmsg

import (
	"errors"
	"strings"
)

// Lexical elements: tokens, quoted strings, comma-separated lists, parameters (RFC 3261 §25.1).

// IsToken reports whether s is a token (RFC 3261 §25.1).
func IsToken(s string) bool {
	for i := 0; i < len(s); i++ {
		if !tokenByte[s[i]] {
			return false
		}
	}
	return s != ""
}

var tokenByte = func() (t [256]bool) {
	for c := range 256 {
		t[c] = c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
			strings.IndexByte("-.!%*_+`'~", byte(c)) >= 0 && c != 0
	}
	return t
}()

// CutElement splits the first element off a comma-separated list. It respects quoted strings and angle brackets.
func CutElement(s string) (first, rest string) {
	quoted, bracket := false, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '<':
			bracket = true
		case c == '>':
			bracket = false
		case c == ',' && !bracket:
			return strings.Trim(s[:i], " \t"), strings.TrimLeft(s[i+1:], " \t")
		}
	}
	return strings.Trim(s, " \t"), ""
}

// CutSpace splits a value at its first linear white space, a space or a tab, and removes all of it (RFC 3261 §25.1).
func CutSpace(s string) (first, rest string) {
	for i := 0; i < len(s); i++ {
		if s[i] == ' ' || s[i] == '\t' {
			return s[:i], strings.TrimLeft(s[i:], " \t")
		}
	}
	return s, ""
}

// cursor reads a field value from left to right.
type cursor struct {
	s string
	i int
}

func (c *cursor) space() {
	for c.i < len(c.s) && (c.s[c.i] == ' ' || c.s[c.i] == '\t') {
		c.i++
	}
}

func (c *cursor) done() bool { return c.i >= len(c.s) }

// accept skips b and the space around it, and reports whether it was there.
func (c *cursor) accept(b byte) bool {
	c.space()
	if c.done() || c.s[c.i] != b {
		return false
	}
	c.i++
	c.space()
	return true
}

func (c *cursor) token() string {
	start := c.i
	for c.i < len(c.s) && tokenByte[c.s[c.i]] {
		c.i++
	}
	return c.s[start:c.i]
}

// quoted reads a quoted string and returns it with its quotes.
func (c *cursor) quoted() (string, bool) {
	start := c.i
	for c.i++; c.i < len(c.s); c.i++ {
		switch c.s[c.i] {
		case '\\':
			c.i++
		case '"':
			c.i++
			return c.s[start:c.i], true
		}
	}
	return "", false
}

// until reads up to one of the stop bytes or the end.
func (c *cursor) until(stop string) string {
	start := c.i
	for c.i < len(c.s) && strings.IndexByte(stop, c.s[c.i]) < 0 {
		c.i++
	}
	return c.s[start:c.i]
}

var errParams = errors.New("malformed parameters")

// param reads one ";name[=value]"; ok is false at the end of the parameters.
func (c *cursor) param() (name, value string, ok bool, err error) {
	if !c.accept(';') {
		return "", "", false, nil
	}
	if name = c.token(); name == "" {
		return "", "", false, errParams
	}
	if !c.accept('=') {
		return name, "", true, nil
	}
	if !c.done() && c.s[c.i] == '"' {
		if value, ok = c.quoted(); !ok {
			return "", "", false, errParams
		}
		return name, value, true, nil
	}
	value = c.until(" \t;,\"<>")
	if value == "" {
		return "", "", false, errParams
	}
	return name, value, true, nil
}

// checkParams reads parameters to the end of s.
func checkParams(s string) error {
	c := cursor{s: s}
	for {
		_, _, ok, err := c.param()
		if err != nil {
			return err
		}
		if ok {
			continue
		}
		if c.space(); !c.done() {
			return errParams
		}
		return nil
	}
}

// ParamOf returns a parameter of ";a=b;c" without quotes, and whether it is present.
func ParamOf(params, name string) (string, bool) {
	c := cursor{s: params}
	for {
		n, v, ok, err := c.param()
		if err != nil || !ok {
			return "", false
		}
		if strings.EqualFold(n, name) {
			return Unquote(v), true
		}
	}
}

// Unquote removes quotes and the escapes inside them.
func Unquote(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	s = s[1 : len(s)-1]
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
