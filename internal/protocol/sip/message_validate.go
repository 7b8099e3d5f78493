package sip

import (
	"strconv"
	"strings"
)

// Validation of received messages: mandatory fields, methods, Require, bodies (RFC 3261 §8.1.1, §8.2).

// refusal is an error response that needs no transaction.
type refusal struct {
	status int
	reason string
	extra  string // header lines, each with its CRLF
}

const (
	maxSeq         = 1<<31 - 1 // RFC 3261 §8.1.1.5
	maxMaxForwards = 255       // RFC 3261 §20.22
)

func badRequest(what string) *refusal { return &refusal{status: 400, reason: what} }

// readMandatory decodes the fields that every message must carry (RFC 3261 §8.1.1) and returns the first error. The
// message keeps all that could be read, for the response.
func (m *message) readMandatory() *refusal {
	r := m.readVia()
	for _, step := range []func() *refusal{m.readVersion, m.readDefect, m.readParties, m.readSeq, m.readMaxForwards, m.readLength} {
		if bad := step(); r == nil {
			r = bad
		}
	}
	return r
}

func (m *message) readVia() *refusal {
	v, err := readVia(m.get(fVia))
	m.via = v
	if err != nil {
		return badRequest("Bad Via")
	}
	return nil
}

func (m *message) readVersion() *refusal {
	if strings.EqualFold(m.version, "SIP/2.0") || m.version == "" {
		return nil
	}
	// RFC 3261 §21.5.6
	if strings.HasPrefix(m.version, "SIP/") && m.defect == "" {
		return &refusal{status: 505}
	}
	return badRequest("Bad Request Line")
}

func (m *message) readDefect() *refusal {
	if m.defect != "" {
		return badRequest("Bad Request - " + m.defect)
	}
	var seen uint64
	for i := range m.fields {
		k := m.fields[i].kind
		if k.isSingleton() && seen&(1<<k) != 0 {
			return badRequest("Bad Request - repeated " + m.fields[i].name)
		}
		seen |= 1 << k
	}
	return nil
}

func (m *message) readParties() (r *refusal) {
	m.callID = m.get(fCallID)
	if m.callID == "" || strings.ContainsAny(m.callID, " \t") {
		r = badRequest("Bad Call-ID")
	}
	if bad := m.from.parse(m.get(fFrom), "From"); bad != nil {
		r = bad
	}
	if bad := m.to.parse(m.get(fTo), "To"); bad != nil {
		r = bad
	}
	return r
}

func (p *party) parse(value, name string) *refusal {
	a, err := readAddress(value)
	*p = party{value: value, addr: a}
	if err != nil || a.uri == "*" {
		return badRequest("Bad " + name)
	}
	p.tag, _ = paramOf(a.params, "tag")
	return nil
}

func (m *message) readSeq() *refusal {
	number, method, _ := strings.Cut(m.get(fCSeq), " ")
	n, err := strconv.ParseUint(number, 10, 64)
	method = strings.TrimLeft(method, " \t")
	if err != nil || n > maxSeq || method == "" {
		return badRequest("Bad CSeq")
	}
	m.cseq, m.cseqMethod = uint32(n), method
	// RFC 3261 §8.1.1.5: the method matches that of the request.
	if m.method != "" && method != m.method && knownMethod(m.method) {
		return badRequest("CSeq Method Mismatch")
	}
	return nil
}

func (m *message) readMaxForwards() *refusal {
	s := m.get(fMaxForwards)
	if s == "" {
		return nil // RFC 2543 had none
	}
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n > maxMaxForwards {
		return badRequest("Bad Max-Forwards")
	}
	m.maxForwards = int(n)
	return nil
}

// readLength cuts the body to Content-Length. A length beyond the body is an error (RFC 3261 §18.3).
func (m *message) readLength() *refusal {
	if !m.has(fContentLength) {
		return nil
	}
	n, err := strconv.ParseUint(m.get(fContentLength), 10, 31)
	if err != nil || int(n) > len(m.body) {
		return badRequest("Bad Content-Length")
	}
	m.body = m.body[:n]
	return nil
}

// validate checks a request after readMandatory succeeded, in the order of RFC 3261 §8.2. nil means it may be
// processed.
func (m *message) validate(allow string) *refusal {
	if !knownMethod(m.method) {
		return &refusal{status: 501}
	}
	if !strings.Contains(allow, m.method) {
		return &refusal{status: 405, extra: "Allow: " + allow + "\r\n"}
	}
	uri, err := ParseURI(m.uri)
	if err != nil || uri.query != "" { // RFC 3261 §19.1.1: no headers in a Request-URI
		return badRequest("Bad Request-URI")
	}
	if !uri.isSIP() && uri.Scheme != "tel" {
		return &refusal{status: 416}
	}
	if m.maxForwards == 0 && !(m.method == "OPTIONS" && uri.User == "") {
		return &refusal{status: 483} // RFC 3261 §16.3
	}
	for _, step := range []func() *refusal{m.checkRequire, m.checkContact, m.checkBody, m.checkAccept} {
		if r := step(); r != nil {
			return r
		}
	}
	return nil
}

// knownOptionTags are the option tags that a Require may name.
var knownOptionTags = []string{"100rel", "norefersub", "path", "replaces", "timer"}

// supportedOptions is the value of our Supported field.
var supportedOptions = strings.Join(knownOptionTags, ", ")

// checkRequire refuses unknown option tags with 420 (RFC 3261 §8.2.2.3).
func (m *message) checkRequire() *refusal {
	if !m.has(fRequire) || m.method == "CANCEL" || m.method == "ACK" {
		return nil
	}
	var unknown []string
	for _, tag := range m.list(fRequire) {
		if tag != "" && !containsFold(knownOptionTags, tag) && !(m.method == "REGISTER" && strings.EqualFold(tag, "outbound")) {
			unknown = append(unknown, tag)
		}
	}
	if unknown == nil {
		return nil
	}
	return &refusal{status: 420, extra: "Unsupported: " + strings.Join(unknown, ", ") + "\r\n"}
}

func containsFold(list []string, s string) bool {
	for _, x := range list {
		if strings.EqualFold(x, s) {
			return true
		}
	}
	return false
}

// checkContact requires one usable Contact in an INVITE (RFC 3261 §8.1.1.8), and in a REGISTER a SIP address of
// record (§10.2) and readable contacts.
func (m *message) checkContact() *refusal {
	if m.method != "INVITE" && m.method != "REGISTER" {
		return nil
	}
	if m.method == "REGISTER" {
		if u, err := ParseURI(m.to.addr.uri); err != nil || !u.isSIP() {
			return badRequest("Bad To")
		}
	}
	contacts := m.list(fContact)
	for _, c := range contacts {
		if _, err := readAddress(c); err != nil {
			return badRequest("Bad Contact")
		}
	}
	if m.method == "INVITE" && m.via.hasUniqueBranch() && len(contacts) != 1 {
		return badRequest("Bad Contact")
	}
	return nil
}

const sdpType = "application/sdp"

// checkBody refuses bodies other than unencoded SDP with 415 (RFC 3261 §8.2.3).
func (m *message) checkBody() *refusal {
	if m.method != "INVITE" && m.method != "UPDATE" && m.method != "PRACK" || m.body == "" {
		return nil
	}
	if enc := m.get(fContentEncoding); enc != "" && !strings.EqualFold(enc, "identity") {
		return &refusal{status: 415, extra: "Accept-Encoding: identity\r\n"}
	}
	if t := m.get(fContentType); t != "" && !isType(t, sdpType) {
		return &refusal{status: 415, extra: "Accept: " + sdpType + "\r\n"}
	}
	return nil
}

func isType(value, want string) bool {
	t, _, _ := strings.Cut(value, ";")
	return strings.EqualFold(strings.TrimRight(t, " \t"), want)
}

// checkAccept refuses an INVITE with 406 if its sender does not accept SDP (RFC 3261 §20.1).
func (m *message) checkAccept() *refusal {
	if m.method != "INVITE" || m.get(fAccept) == "" {
		return nil
	}
	for _, t := range m.list(fAccept) {
		if isType(t, sdpType) || isType(t, "application/*") || isType(t, "*/*") {
			return nil
		}
	}
	return &refusal{status: 406, extra: "Accept: " + sdpType + "\r\n"}
}

// knownMethod reports whether a method is registered. Others are answered 501 (RFC 3261 §21.5.2).
func knownMethod(m string) bool {
	switch m {
	case "INVITE", "ACK", "BYE", "CANCEL", "OPTIONS", "REGISTER", "INFO", "REFER",
		"UPDATE", "PRACK", "SUBSCRIBE", "NOTIFY", "PUBLISH", "MESSAGE":
		return true
	}
	return false
}
