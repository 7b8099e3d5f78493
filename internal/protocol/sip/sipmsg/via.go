package sipmsg

import (
	"errors"
	"net/netip"
	"strings"
)

// Via: parsing, received and rport, and the port of a response (RFC 3261 §18.2, RFC 3581).

// Via is the topmost Via of a message.
type Via struct {
	transport string
	Host      string
	Port      int
	Branch    string
	rport     bool   // the sender requests the source port (RFC 3581)
	head      string // the element up to its parameters
	params    string // its parameters, with the leading semicolon
	Rest      string // further elements in the same field
}

var errVia = errors.New("malformed Via")

// readVia parses the first element of a Via field (RFC 3261 §20.42).
func readVia(s string) (Via, error) {
	var v Via
	first, rest := CutElement(s)
	v.Rest = rest
	if strings.HasSuffix(strings.TrimRight(s, " \t"), ",") {
		return v, errVia
	}
	c := cursor{s: first}
	if !v.protocol(&c) {
		return v, errVia
	}
	sentBy := strings.TrimRight(c.until("; \t"), " \t")
	c.space()
	if !c.done() && c.s[c.i] == ':' { // space around the colon
		c.i++
		c.space()
		sentBy += ":" + c.until("; \t")
	}
	var ok bool
	if v.Host, v.Port, ok = SplitHostPort(sentBy); !ok {
		return v, errVia
	}
	v.head = strings.TrimRight(first[:c.i], " \t")
	v.params = first[c.i:]
	return v, v.readParams(&c)
}

func (v *Via) protocol(c *cursor) bool {
	if !strings.EqualFold(c.token(), "SIP") || !c.accept('/') || c.token() == "" || !c.accept('/') {
		return false
	}
	v.transport = c.token()
	if v.transport == "" || c.done() || c.s[c.i] != ' ' && c.s[c.i] != '\t' {
		return false
	}
	c.space()
	return true
}

func (v *Via) readParams(c *cursor) error {
	for {
		name, value, ok, err := c.param()
		if err != nil {
			return errVia
		}
		if !ok {
			if c.space(); !c.done() {
				return errVia
			}
			return nil
		}
		switch {
		case strings.EqualFold(name, "branch"):
			v.Branch = value
		case strings.EqualFold(name, "rport"):
			v.rport = true
		}
	}
}

// HasUniqueBranch reports whether the branch alone identifies the transaction (RFC 3261 §17.2.3). The bare magic
// cookie does not.
func (v *Via) HasUniqueBranch() bool {
	return len(v.Branch) > len(branchCookie) && strings.EqualFold(v.Branch[:len(branchCookie)], branchCookie)
}

// ReplyPort returns the port of a UDP response: the source port if rport was given, else the sent-by port (RFC 3581
// §4, RFC 3261 §18.2.2).
func (v *Via) ReplyPort(source uint16) uint16 {
	if v.rport || v.Host == "" {
		return source
	}
	if v.Port == 0 {
		return 5060
	}
	return uint16(v.Port)
}

// AppendTo writes the Via value with received and rport filled in
// (RFC 3261 §18.2.1, RFC 3581 §4).
func (v *Via) AppendTo(b []byte, source netip.AddrPort) []byte {
	b = append(b, v.head...)
	c := cursor{s: v.params}
	for {
		name, value, ok, err := c.param()
		if err != nil || !ok {
			break
		}
		if strings.EqualFold(name, "received") || strings.EqualFold(name, "rport") {
			continue
		}
		b = append(append(b, ';'), name...)
		if value != "" {
			b = append(append(b, '='), value...)
		}
	}
	b = append(b, ";received="...)
	b = source.Addr().AppendTo(b)
	if v.rport {
		b = AppendInt(append(b, ";rport="...), int64(source.Port()))
	}
	return b
}
