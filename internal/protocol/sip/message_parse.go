package sip

import (
	"errors"
	"strconv"
	"strings"
)

// Parsing a SIP message into start line, header fields and body (RFC 3261 §7).

// message is a parsed SIP message that is not validated yet. The strings are substrings of raw. A request has a
// method, a response a status.
type message struct {
	raw     string
	flow    flow
	method  string
	uri     string
	version string
	status  int
	reason  string
	fields  []field
	body    string
	defect  string // why the message is malformed, "" if it is not

	// Set by readMandatory.
	via         via
	from, to    party
	callID      string
	cseq        uint32
	cseqMethod  string
	maxForwards int // -1 if absent
}

// party is a From or To field.
type party struct {
	value string // the whole field
	addr  nameAddr
	tag   string
}

var errNotSIP = errors.New("not a SIP message")

// parse parses raw. Only a missing start line is an error. Any other defect is recorded for readMandatory and
// validate (RFC 4475).
func (m *message) parse(raw string, f flow) error {
	*m = message{raw: raw, flow: f, fields: m.fields[:0], maxForwards: -1}
	line, rest, ok := cutLine(raw)
	if !ok || line == "" {
		return errNotSIP
	}
	if err := m.startLine(line); err != nil {
		return err
	}
	for {
		line, rest, ok = cutLine(rest)
		if !ok {
			m.noteDefect("header section does not end")
			return nil
		}
		if line == "" {
			m.body = rest
			return nil
		}
		if rest != "" && (rest[0] == ' ' || rest[0] == '\t') {
			line, rest = unfold(line, rest)
		}
		m.addField(line)
	}
}

// noteDefect records the first defect.
func (m *message) noteDefect(flaw string) {
	if m.defect == "" {
		m.defect = flaw
	}
}

// cutLine returns the text up to CRLF, or up to a lone LF, and the rest.
func cutLine(s string) (line, rest string, ok bool) {
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

// unfold joins continuation lines with one space (RFC 3261 §7.3.1).
func unfold(line, rest string) (string, string) {
	var b strings.Builder
	b.WriteString(strings.TrimRight(line, " \t"))
	for rest != "" && (rest[0] == ' ' || rest[0] == '\t') {
		more, after, ok := cutLine(rest)
		if !ok {
			break
		}
		b.WriteByte(' ')
		b.WriteString(strings.Trim(more, " \t"))
		rest = after
	}
	return b.String(), rest
}

func (m *message) startLine(line string) error {
	if len(line) > 4 && strings.EqualFold(line[:4], "SIP/") {
		return m.statusLine(line)
	}
	method, rest, ok := strings.Cut(line, " ")
	if !ok || !isToken(method) {
		return errNotSIP
	}
	m.method = method
	// RFC 3261 §7.1: exactly two single spaces, none at the end.
	sp := strings.LastIndexByte(rest, ' ')
	if sp < 0 {
		m.uri = rest
		m.noteDefect("no SIP version")
		return nil
	}
	m.uri, m.version = rest[:sp], rest[sp+1:]
	if m.uri == "" || strings.ContainsAny(m.uri, " \t") || m.version == "" {
		m.noteDefect("malformed request line")
	}
	return nil
}

func (m *message) statusLine(line string) error {
	version, rest, _ := strings.Cut(line, " ")
	code, reason, _ := strings.Cut(rest, " ")
	status, err := strconv.Atoi(code)
	if err != nil || len(code) != 3 || status < 100 || status > 699 {
		return errNotSIP
	}
	m.version, m.status, m.reason = version, status, reason
	return nil
}

func (m *message) addField(line string) {
	name, value, ok := strings.Cut(line, ":")
	name = strings.TrimRight(name, " \t")
	if !ok || !isToken(name) {
		m.noteDefect("malformed header field")
		return
	}
	if len(m.fields) >= maxFields {
		m.noteDefect("too many header fields")
		return
	}
	m.fields = append(m.fields, field{fieldKind(name), name, strings.Trim(value, " \t")})
}

// maxFields bounds the header fields of one message.
const maxFields = 256

// get returns the first value of a field, or "" if there is none.
func (m *message) get(k fieldName) string {
	for i := range m.fields {
		if m.fields[i].kind == k {
			return m.fields[i].value
		}
	}
	return ""
}

// has reports whether a field is present, empty or not.
func (m *message) has(k fieldName) bool {
	for i := range m.fields {
		if m.fields[i].kind == k {
			return true
		}
	}
	return false
}

// getNamed returns the first value of any field by its name.
func (m *message) getNamed(name string) string {
	for i := range m.fields {
		if strings.EqualFold(m.fields[i].name, name) {
			return m.fields[i].value
		}
	}
	return ""
}

// list returns all comma-separated elements of a field, over all its lines.
func (m *message) list(k fieldName) []string {
	var out []string
	for i := range m.fields {
		if m.fields[i].kind != k {
			continue
		}
		for rest := m.fields[i].value; rest != ""; {
			var v string
			v, rest = cutElement(rest)
			out = append(out, v)
		}
	}
	return out
}
