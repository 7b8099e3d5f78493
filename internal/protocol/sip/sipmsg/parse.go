// Package sipmsg parses, checks and writes SIP messages (RFC 3261 §7, §19, §20, §25).
package sipmsg

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

// Parsing a SIP message into start line, header fields and body (RFC 3261 §7).

// Message is a parsed SIP message that is not validated yet. The strings are substrings of raw. A request has a
// method, a response a status.
type Message struct {
	raw     string
	source  netip.AddrPort // for the received and rport of a response
	Method  string
	URI     string
	version string
	Status  int
	Reason  string
	Fields  []Field
	Body    string
	defect  string // why the message is malformed, "" if it is not

	// Set by ReadMandatory.
	Via         Via
	From, To    Party
	CallID      string
	CSeq        uint32
	CSeqMethod  string
	MaxForwards int // -1 if absent
}

// Party is a From or To field.
type Party struct {
	Value string // the whole field
	Addr  NameAddr
	Tag   string
}

var errNotSIP = errors.New("not a SIP message")

// Parse parses raw, a message from source. Only a missing start line is an error. Any other defect is recorded for
// ReadMandatory and Validate (RFC 4475).
func (m *Message) Parse(raw string, source netip.AddrPort) error {
	*m = Message{raw: raw, source: source, Fields: m.Fields[:0], MaxForwards: -1}
	line, rest, ok := CutLine(raw)
	if !ok || line == "" {
		return errNotSIP
	}
	if err := m.startLine(line); err != nil {
		return err
	}
	for {
		line, rest, ok = CutLine(rest)
		if !ok {
			m.noteDefect("header section does not end")
			return nil
		}
		if line == "" {
			m.Body = rest
			return nil
		}
		if rest != "" && (rest[0] == ' ' || rest[0] == '\t') {
			line, rest = Unfold(line, rest)
		}
		m.addField(line)
	}
}

// Raw returns the text that was parsed.
func (m *Message) Raw() string { return m.raw }

// noteDefect records the first defect.
func (m *Message) noteDefect(flaw string) {
	if m.defect == "" {
		m.defect = flaw
	}
}

// CutLine returns the text up to CRLF, or up to a lone LF, and the rest.
func CutLine(s string) (line, rest string, ok bool) {
	i := strings.IndexByte(s, '\n')
	if i < 0 {
		return s, "", false
	}
	line = s[:i]
	if i > 0 && line[i-1] == '\r' {
		line = line[:i-1]
	}
	return line, s[i+1:], true
}

// Unfold joins continuation lines with one space (RFC 3261 §7.3.1).
func Unfold(line, rest string) (string, string) {
	var b strings.Builder
	b.WriteString(strings.TrimRight(line, " \t"))
	for rest != "" && (rest[0] == ' ' || rest[0] == '\t') {
		more, after, ok := CutLine(rest)
		if !ok {
			break
		}
		b.WriteByte(' ')
		b.WriteString(strings.Trim(more, " \t"))
		rest = after
	}
	return b.String(), rest
}

func (m *Message) startLine(line string) error {
	if len(line) > 4 && strings.EqualFold(line[:4], "SIP/") {
		return m.statusLine(line)
	}
	method, rest, ok := strings.Cut(line, " ")
	if !ok || !IsToken(method) {
		return errNotSIP
	}
	m.Method = method
	// RFC 3261 §7.1: exactly two single spaces, none at the end.
	sp := strings.LastIndexByte(rest, ' ')
	if sp < 0 {
		m.URI = rest
		m.noteDefect("no SIP version")
		return nil
	}
	m.URI, m.version = rest[:sp], rest[sp+1:]
	if m.URI == "" || strings.ContainsAny(m.URI, " \t") || m.version == "" {
		m.noteDefect("malformed request line")
	}
	return nil
}

func (m *Message) statusLine(line string) error {
	version, rest, _ := strings.Cut(line, " ")
	code, reason, _ := strings.Cut(rest, " ")
	status, err := strconv.Atoi(code)
	if err != nil || len(code) != 3 || status < 100 || status > 699 {
		return errNotSIP
	}
	m.version, m.Status, m.Reason = version, status, reason
	return nil
}

func (m *Message) addField(line string) {
	name, value, ok := strings.Cut(line, ":")
	name = strings.TrimRight(name, " \t")
	if !ok || !IsToken(name) {
		m.noteDefect("malformed header field")
		return
	}
	if len(m.Fields) >= maxFields {
		m.noteDefect("too many header fields")
		return
	}
	m.Fields = append(m.Fields, Field{FieldNamed(name), name, strings.Trim(value, " \t")})
}

// maxFields bounds the header fields of one message.
const maxFields = 256

// Get returns the first value of a field, or "" if there is none.
func (m *Message) Get(k FieldName) string {
	for i := range m.Fields {
		if m.Fields[i].Kind == k {
			return m.Fields[i].Value
		}
	}
	return ""
}

// Has reports whether a field is present, empty or not.
func (m *Message) Has(k FieldName) bool {
	for i := range m.Fields {
		if m.Fields[i].Kind == k {
			return true
		}
	}
	return false
}

// GetNamed returns the first value of any field by its name.
func (m *Message) GetNamed(name string) string {
	for i := range m.Fields {
		if strings.EqualFold(m.Fields[i].Name, name) {
			return m.Fields[i].Value
		}
	}
	return ""
}

// List returns all comma-separated elements of a field, over all its lines.
func (m *Message) List(k FieldName) []string {
	var out []string
	for i := range m.Fields {
		if m.Fields[i].Kind != k {
			continue
		}
		for rest := m.Fields[i].Value; rest != ""; {
			var v string
			v, rest = CutElement(rest)
			out = append(out, v)
		}
	}
	return out
}

// Authorizations returns all Authorization and Proxy-Authorization values of a message.
func (m *Message) Authorizations() []string {
	var out []string
	for i := range m.Fields {
		if k := m.Fields[i].Kind; k == FieldAuthorization || k == FieldProxyAuthorization {
			out = append(out, m.Fields[i].Value)
		}
	}
	return out
}

// Count returns the number of lines of a field.
func (m *Message) Count(k FieldName) (n int) {
	for i := range m.Fields {
		if m.Fields[i].Kind == k {
			n++
		}
	}
	return n
}
