package sip

import (
	"errors"
	"strings"
)

// Via: parsing, received and rport, and the port of a response (RFC 3261 §18.2, RFC 3581).

// via is the topmost Via of a message.
type via struct {
	transport string
	host      string
	port      int
	branch    string
	rport     bool   // the sender requests the source port (RFC 3581)
	head      string // the element up to its parameters
	params    string // its parameters, with the leading semicolon
	rest      string // further elements in the same field
}

var errVia = errors.New("malformed Via")

// branchCookie is the prefix of a branch that identifies an RFC 3261 transaction (§8.1.1.7).
const branchCookie = "z9hG4bK"

// readVia parses the first element of a Via field (RFC 3261 §20.42).
func readVia(s string) (via, error) {
	var v via
	first, rest := cutElement(s)
	v.rest = rest
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
	if v.host, v.port, ok = splitHostPort(sentBy); !ok {
		return v, errVia
	}
	v.head = strings.TrimRight(first[:c.i], " \t")
	v.params = first[c.i:]
	return v, v.readParams(&c)
}

func (v *via) protocol(c *cursor) bool {
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

func (v *via) readParams(c *cursor) error {
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
			v.branch = value
		case strings.EqualFold(name, "rport"):
			v.rport = true
		}
	}
}

// hasUniqueBranch reports whether the branch alone identifies the transaction (RFC 3261 §17.2.3). The bare magic
// cookie does not.
func (v *via) hasUniqueBranch() bool {
	return len(v.branch) > len(branchCookie) && strings.EqualFold(v.branch[:len(branchCookie)], branchCookie)
}

// replyPort returns the port of a UDP response: the source port if rport was given, else the sent-by port (RFC 3581
// §4, RFC 3261 §18.2.2).
func (v *via) replyPort(source uint16) uint16 {
	if v.rport || v.host == "" {
		return source
	}
	if v.port == 0 {
		return 5060
	}
	return uint16(v.port)
}

// append writes the Via value with received and rport filled in
// (RFC 3261 §18.2.1, RFC 3581 §4).
func (v *via) append(b []byte, f flow) []byte {
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
	b = f.addr.Addr().AppendTo(b)
	if v.rport {
		b = appendInt(append(b, ";rport="...), int64(f.addr.Port()))
	}
	return b
}
