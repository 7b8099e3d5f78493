package sipmsg

import (
	"strconv"
	"strings"
)

// Validation of received messages: mandatory fields, methods, Require, bodies (RFC 3261 §8.1.1, §8.2).

// Refusal is an error response that needs no transaction.
type Refusal struct {
	Status int
	Reason string
	Extra  string // header lines, each with its CRLF
}

const (
	MaxSeq         = 1<<31 - 1 // RFC 3261 §8.1.1.5
	maxMaxForwards = 255       // RFC 3261 §20.22
)

func badRequest(what string) *Refusal { return &Refusal{Status: 400, Reason: what} }

// ReadMandatory decodes the fields that every message must carry (RFC 3261 §8.1.1) and returns the first error. The
// message keeps all that could be read, for the response.
func (m *Message) ReadMandatory() *Refusal {
	r := m.ReadVia()
	for _, step := range []func() *Refusal{m.readVersion, m.readDefect, m.ReadParties, m.readSeq, m.readMaxForwards, m.readLength} {
		if bad := step(); r == nil {
			r = bad
		}
	}
	return r
}

// ReadVia decodes the topmost Via.
func (m *Message) ReadVia() *Refusal {
	v, err := readVia(m.Get(FieldVia))
	m.Via = v
	if err != nil {
		return badRequest("Bad Via")
	}
	return nil
}

func (m *Message) readVersion() *Refusal {
	if strings.EqualFold(m.version, "SIP/2.0") || m.version == "" {
		return nil
	}
	// RFC 3261 §21.5.6
	if strings.HasPrefix(m.version, "SIP/") && m.defect == "" {
		return &Refusal{Status: 505}
	}
	return badRequest("Bad Request Line")
}

func (m *Message) readDefect() *Refusal {
	if m.defect != "" {
		return badRequest("Bad Request - " + m.defect)
	}
	var seen uint64
	for i := range m.Fields {
		k := m.Fields[i].Kind
		if k.isSingleton() && seen&(1<<k) != 0 {
			return badRequest("Bad Request - repeated " + m.Fields[i].Name)
		}
		seen |= 1 << k
	}
	return nil
}

// ReadParties decodes Call-ID, From and To.
func (m *Message) ReadParties() (r *Refusal) {
	m.CallID = m.Get(FieldCallID)
	if m.CallID == "" || strings.ContainsAny(m.CallID, " \t") {
		r = badRequest("Bad Call-ID")
	}
	if bad := m.From.parse(m.Get(FieldFrom), "From"); bad != nil {
		r = bad
	}
	if bad := m.To.parse(m.Get(FieldTo), "To"); bad != nil {
		r = bad
	}
	return r
}

func (p *Party) parse(value, name string) *Refusal {
	a, err := ReadAddress(value)
	*p = Party{Value: value, Addr: a}
	if err != nil || a.URI == "*" {
		return badRequest("Bad " + name)
	}
	p.Tag, _ = ParamOf(a.Params, "tag")
	return nil
}

func (m *Message) readSeq() *Refusal {
	number, method := CutSpace(m.Get(FieldCSeq))
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil || n > MaxSeq || method == "" {
		return badRequest("Bad CSeq")
	}
	m.CSeq, m.CSeqMethod = uint32(n), method
	// RFC 3261 §8.1.1.5: the method matches that of the request.
	if m.Method != "" && method != m.Method && knownMethod(m.Method) {
		return badRequest("CSeq Method Mismatch")
	}
	return nil
}

func (m *Message) readMaxForwards() *Refusal {
	s := m.Get(FieldMaxForwards)
	if s == "" {
		return nil // RFC 2543 had none
	}
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n > maxMaxForwards {
		return badRequest("Bad Max-Forwards")
	}
	m.MaxForwards = int(n)
	return nil
}

// readLength cuts the body to Content-Length. A length beyond the body is an error (RFC 3261 §18.3).
func (m *Message) readLength() *Refusal {
	if !m.Has(FieldContentLength) {
		return nil
	}
	n, err := strconv.ParseUint(m.Get(FieldContentLength), 10, 31)
	if err != nil || int(n) > len(m.Body) {
		return badRequest("Bad Content-Length")
	}
	m.Body = m.Body[:n]
	return nil
}

// Validate checks a request after ReadMandatory succeeded, in the order of RFC 3261 §8.2. nil means it may be
// processed.
func (m *Message) Validate(allow string) *Refusal {
	if !knownMethod(m.Method) {
		return &Refusal{Status: 501}
	}
	if !strings.Contains(allow, m.Method) {
		return &Refusal{Status: 405, Extra: "Allow: " + allow + "\r\n"}
	}
	uri, err := ParseURI(m.URI)
	if err != nil || uri.query != "" { // RFC 3261 §19.1.1: no headers in a Request-URI
		return badRequest("Bad Request-URI")
	}
	if !uri.IsSIP() && uri.Scheme != "tel" {
		return &Refusal{Status: 416}
	}
	if m.MaxForwards == 0 && !(m.Method == "OPTIONS" && uri.User == "") {
		return &Refusal{Status: 483} // RFC 3261 §16.3
	}
	for _, step := range []func() *Refusal{m.checkRequire, m.checkContact, m.checkBody, m.checkAccept} {
		if r := step(); r != nil {
			return r
		}
	}
	return nil
}

// knownOptionTags are the option tags that a Require may name.
var knownOptionTags = []string{"100rel", "norefersub", "path", "replaces", "timer"}

// SupportedOptions is the value of our Supported field.
var SupportedOptions = strings.Join(knownOptionTags, ", ")

// checkRequire refuses unknown option tags with 420 (RFC 3261 §8.2.2.3).
func (m *Message) checkRequire() *Refusal {
	if !m.Has(FieldRequire) || m.Method == "CANCEL" || m.Method == "ACK" {
		return nil
	}
	var unknown []string
	for _, tag := range m.List(FieldRequire) {
		if tag != "" && !ContainsFold(knownOptionTags, tag) && !(m.Method == "REGISTER" && strings.EqualFold(tag, "outbound")) {
			unknown = append(unknown, tag)
		}
	}
	if unknown == nil {
		return nil
	}
	return &Refusal{Status: 420, Extra: "Unsupported: " + strings.Join(unknown, ", ") + "\r\n"}
}

// ContainsFold reports whether list contains s in any case.
func ContainsFold(list []string, s string) bool {
	for _, x := range list {
		if strings.EqualFold(x, s) {
			return true
		}
	}
	return false
}

// checkContact requires one usable Contact in an INVITE (RFC 3261 §8.1.1.8), and in a REGISTER a SIP address of
// record (§10.2) and readable contacts.
func (m *Message) checkContact() *Refusal {
	if m.Method != "INVITE" && m.Method != "REGISTER" {
		return nil
	}
	if m.Method == "REGISTER" {
		if u, err := ParseURI(m.To.Addr.URI); err != nil || !u.IsSIP() {
			return badRequest("Bad To")
		}
	}
	contacts := m.List(FieldContact)
	for _, c := range contacts {
		if _, err := ReadAddress(c); err != nil {
			return badRequest("Bad Contact")
		}
	}
	if m.Method == "INVITE" && m.Via.HasUniqueBranch() && len(contacts) != 1 {
		return badRequest("Bad Contact")
	}
	return nil
}

// IsType reports whether a Content-Type or Accept value is the type want, whatever its parameters.
func IsType(value, want string) bool {
	t, _, _ := strings.Cut(value, ";")
	return strings.EqualFold(strings.TrimRight(t, " \t"), want)
}

// checkAccept refuses an INVITE with 406 if its sender does not accept SDP (RFC 3261 §20.1).
func (m *Message) checkAccept() *Refusal {
	if m.Method != "INVITE" || m.Get(FieldAccept) == "" {
		return nil
	}
	for _, t := range m.List(FieldAccept) {
		if IsType(t, SDPType) || IsType(t, "application/*") || IsType(t, "*/*") {
			return nil
		}
	}
	return &Refusal{Status: 406, Extra: "Accept: " + AcceptedTypes + "\r\n"}
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

// HasOptionTag reports whether a field lists an option tag.
func (m *Message) HasOptionTag(k FieldName, tag string) bool {
	for i := range m.Fields {
		if m.Fields[i].Kind != k {
			continue
		}
		for rest := m.Fields[i].Value; rest != ""; {
			var v string
			v, rest = CutElement(rest)
			if strings.EqualFold(v, tag) {
				return true
			}
		}
	}
	return false
}
