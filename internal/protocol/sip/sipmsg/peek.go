package sipmsg

import (
	"net/netip"
	"strconv"
	"strings"
)

// Peek: what admission needs of a message, without parsing it.

// Peek holds the values that admission and the trace need of a message, found without parsing it.
type Peek struct {
	Raw         string // the message
	Line        string // start line
	CallID      string
	Branch      string // of the topmost Via
	Request     bool
	Invite      bool
	InDialog    bool // To has a tag: the message belongs to a dialog
	AckOrCancel bool // an ACK or a CANCEL
}

// PeekMessage extracts these values. ok is false if raw is no SIP message.
func PeekMessage(raw string) (p Peek, ok bool) {
	line, rest, ok := CutLine(raw)
	if !ok || len(line) < 12 {
		return p, false
	}
	p.Raw, p.Line = raw, line
	p.Request = !strings.HasPrefix(line, "SIP/")
	p.Invite = strings.HasPrefix(line, "INVITE ")
	p.AckOrCancel = strings.HasPrefix(line, "ACK ") || strings.HasPrefix(line, "CANCEL ")
	seenTo := false
	for rest != "" && (p.CallID == "" || p.Branch == "" || !seenTo) {
		line, rest, _ = CutLine(rest)
		if line == "" {
			break
		}
		if rest != "" && (rest[0] == ' ' || rest[0] == '\t') {
			line, rest = Unfold(line, rest)
		}
		name, value, _ := strings.Cut(line, ":")
		switch FieldNamed(strings.TrimRight(name, " \t")) {
		case FieldCallID:
			p.CallID = strings.Trim(value, " \t")
		case FieldVia:
			if p.Branch == "" {
				p.Branch = peekBranch(value)
			}
		case FieldTo:
			seenTo = true
			p.InDialog = peekTag(value)
		}
	}
	return p, true
}

// peekTag reports whether a To value has a tag. Only a value with quotes or without brackets is parsed.
func peekTag(to string) bool {
	if _, after, ok := strings.Cut(to, ">"); ok && strings.IndexByte(to, '"') < 0 {
		return strings.Contains(after, "tag=")
	}
	a, _ := ReadAddress(strings.Trim(to, " \t"))
	_, tag := ParamOf(a.Params, "tag")
	return tag
}

func peekBranch(via string) string {
	_, after, ok := strings.Cut(via, "branch=")
	if !ok {
		return "-"
	}
	if end := strings.IndexAny(after, ";, \t"); end >= 0 {
		return after[:end]
	}
	return after
}

// PeekUser returns the user name that a request claims, without parsing all of it: the one of its credentials, else the
// user part of From.
func PeekUser(raw string) string {
	from := ""
	for _, rest, ok := CutLine(raw); ok && rest != ""; {
		var line string
		if line, rest, ok = CutLine(rest); line == "" {
			break
		}
		if rest != "" && (rest[0] == ' ' || rest[0] == '\t') {
			line, rest = Unfold(line, rest)
		}
		name, value, _ := strings.Cut(line, ":")
		switch FieldNamed(strings.TrimRight(name, " \t")) {
		case FieldAuthorization, FieldProxyAuthorization:
			if _, user, found := strings.Cut(value, `username="`); found {
				user, _, _ = strings.Cut(user, `"`)
				return user
			}
		case FieldFrom:
			if a, err := ReadAddress(strings.Trim(value, " \t")); err == nil {
				u, _ := ParseURI(a.URI)
				from = u.User
			}
		}
	}
	return from
}

// PeekSecondSource returns the source that the sender of a message wrote into the second Via: received and rport
// (RFC 3261 §18.2.1, RFC 3581 §4), or else its sent-by if that is an address. It is zero without a second Via.
func PeekSecondSource(raw string) netip.AddrPort {
	via, ok := secondVia(raw)
	if !ok {
		return netip.AddrPort{}
	}
	v, err := readVia(via)
	if err != nil {
		return netip.AddrPort{}
	}
	host, port := v.Host, v.Port
	c := cursor{s: v.params}
	for {
		name, value, ok, err := c.param()
		if err != nil || !ok {
			break
		}
		switch { // the last one counts: the sender of the message added it
		case strings.EqualFold(name, "received"):
			host = value
		case strings.EqualFold(name, "rport"):
			if n, err := strconv.ParseUint(value, 10, 16); err == nil {
				port = int(n)
			}
		}
	}
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		return netip.AddrPort{}
	}
	if port == 0 {
		port = 5060
	}
	return netip.AddrPortFrom(a.Unmap(), uint16(port))
}

// secondVia returns the second Via value of a message.
func secondVia(raw string) (string, bool) {
	seen := 0
	for _, rest, ok := CutLine(raw); ok && rest != ""; {
		var line string
		if line, rest, ok = CutLine(rest); line == "" {
			break
		}
		if rest != "" && (rest[0] == ' ' || rest[0] == '\t') {
			line, rest = Unfold(line, rest)
		}
		name, value, _ := strings.Cut(line, ":")
		if FieldNamed(strings.TrimRight(name, " \t")) != FieldVia {
			continue
		}
		for value = strings.Trim(value, " \t"); value != ""; {
			var one string
			one, value = CutElement(value)
			if seen++; seen == 2 {
				return one, true
			}
		}
	}
	return "", false
}
