// Package strictjson finds members and texts that JSON decoders read in different ways (RFC 7493).
package strictjson

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Codes of faults.
const (
	Repeated          = "repeated"           // a name occurs twice in one object
	InvalidUTF8       = "invalid_utf8"       // a text has bytes that are not UTF-8
	UnpairedSurrogate = "unpaired_surrogate" // a text has one half of a surrogate pair
	UnknownMember     = "unknown_field"      // the type has no such member
)

// Fault is one part of a document that decoders read in different ways.
type Fault struct {
	Field   string // path such as deep.tags[1]
	Code    string
	Message string
	Variant bool // an unknown member that differs from a known one only in case
}

// Limits of the faults of one document, and of a path in runes.
const (
	maxFaults = 100
	maxField  = 200
)

// WithoutMark returns a document without the byte order mark that some programs write in front of it. A decoder may ignore the mark
// (RFC 8259 §8.1).
func WithoutMark(document []byte) []byte { return bytes.TrimPrefix(document, []byte("\ufeff")) }

// Check returns repeated members, and texts that are not Unicode. It returns nil for a document that is not JSON,
// because every decoder refuses that.
func Check(document []byte) []Fault {
	if !json.Valid(document) {
		return nil
	}
	s := scanner{text: document}
	s.value()
	return s.faults
}

// scanner walks a valid document.
type scanner struct {
	text    []byte
	at      int
	path    []string
	faults  []Fault
	damaged []span // texts that are not Unicode, except names of members
}

func (s *scanner) add(code, message string) {
	if len(s.faults) < maxFaults {
		s.faults = append(s.faults, Fault{Field: fieldName(s.path), Code: code, Message: message})
	}
}

// fieldName returns the path as valid UTF-8 of limited length. The document itself is "body".
func fieldName(path []string) string {
	name := strings.TrimPrefix(strings.ToValidUTF8(strings.Join(path, ""), "\ufffd"), ".")
	if r := []rune(name); len(r) > maxField {
		name = string(r[:maxField])
	}
	if name == "" {
		return "body"
	}
	return name
}

func (s *scanner) space() {
	for s.at < len(s.text) && strings.IndexByte(" \t\r\n", s.text[s.at]) >= 0 {
		s.at++
	}
}

func (s *scanner) value() {
	s.space()
	switch s.text[s.at] {
	case '{':
		s.object()
	case '[':
		s.array()
	case '"':
		s.str()
	default:
		for s.at < len(s.text) && strings.IndexByte(",]} \t\r\n", s.text[s.at]) < 0 {
			s.at++
		}
	}
}

func (s *scanner) object() {
	var seen map[string]bool
	for s.at++; !s.ended('}'); {
		raw := s.rawString()
		name := nameOf(raw)
		s.path = append(s.path, "."+name)
		s.unicode(raw)
		if seen[name] {
			s.add(Repeated, "is given more than once")
		}
		if seen == nil {
			seen = map[string]bool{}
		}
		seen[name] = true
		s.space()
		s.at++ // the colon
		s.value()
		s.path = s.path[:len(s.path)-1]
	}
}

func (s *scanner) array() {
	i := 0
	for s.at++; !s.ended(']'); i++ {
		s.path = append(s.path, indexed(i))
		s.value()
		s.path = s.path[:len(s.path)-1]
	}
}

// ended skips a comma, and reports whether the object or array ends here. It skips the closing character too.
func (s *scanner) ended(closing byte) bool {
	s.space()
	if s.text[s.at] == ',' {
		s.at++
		s.space()
	}
	if s.text[s.at] != closing {
		return false
	}
	s.at++
	return true
}

func (s *scanner) str() {
	raw := s.rawString()
	if s.unicode(raw) {
		s.damaged = append(s.damaged, span{s.at - len(raw), s.at})
	}
}

// rawString skips a text and returns it with its quotes and escapes.
func (s *scanner) rawString() []byte {
	start := s.at
	for s.at++; s.text[s.at] != '"'; s.at++ {
		if s.text[s.at] == '\\' {
			s.at++
		}
	}
	s.at++
	return s.text[start:s.at]
}

// nameOf returns a member's name as encoding/json decodes it.
func nameOf(raw []byte) string {
	var name string
	_ = json.Unmarshal(raw, &name) // part of a valid document
	return name
}

// unicode adds the faults of a text with its escapes, and reports whether it has any.
func (s *scanner) unicode(raw []byte) bool {
	valid, unpaired := utf8.Valid(raw), hasUnpaired(raw)
	if !valid {
		s.add(InvalidUTF8, "must be valid UTF-8")
	}
	if unpaired {
		s.add(UnpairedSurrogate, "must not contain half of a surrogate pair")
	}
	return !valid || unpaired
}

// hasUnpaired reports whether a text has an escaped surrogate without its other half (RFC 8259 §8.2).
func hasUnpaired(raw []byte) bool {
	high := false
	for i := 0; i < len(raw)-1; i++ {
		unit, length := uint64(0), 1
		if raw[i] == '\\' {
			if length = 2; raw[i+1] == 'u' {
				unit, _ = strconv.ParseUint(string(raw[i+2:i+6]), 16, 32)
				length = 6
			}
		}
		low := unit >= 0xDC00 && unit <= 0xDFFF
		if i > 0 && high != low {
			return true
		}
		high = unit >= 0xD800 && unit <= 0xDBFF
		i += length - 1
	}
	return high
}
