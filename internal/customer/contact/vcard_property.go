package contact

import (
	"io"
	"mime/quotedprintable"
	"strings"

	"github.com/emersion/go-vcard"
)

// The library reads vCards of version 3.0 and 4.0. This file rewrites properties of version 2.1 for it: types without
// a name (TEL;CELL) and values in quoted-printable. Parameters other than TYPE are omitted.

// DecodeCard decodes the unfolded properties of one card. The texts of its fields are read by CardText, CardPart and
// CardNumber.
func DecodeCard(lines []string) vcard.Card {
	var text strings.Builder
	text.WriteString("BEGIN:VCARD\r\n")
	for _, line := range lines {
		if plain := plainProperty(line); plain != "" {
			text.WriteString(plain + "\r\n")
		}
	}
	text.WriteString("END:VCARD\r\n")
	card, err := vcard.NewDecoder(strings.NewReader(text.String())).Decode()
	if err != nil { // the frame above is complete
		return vcard.Card{}
	}
	return card
}

// escapedSemicolon stands for \; in a value for the library, which does not distinguish it from a separator.
const escapedSemicolon = "\x00"

// plainEscapes maps the escapes of a value (RFC 6350 §3.4) to those that the library decodes.
var plainEscapes = strings.NewReplacer(`\\`, `\\`, `\n`, `\n`, `\N`, `\n`, `\;`, escapedSemicolon, `\:`, ":", "\x00", "",
	"\r\n", `\n`, "\n", `\n`, "\r", `\n`)

// plainProperty returns a property in the form of version 3.0; "" if the line is none.
func plainProperty(line string) string {
	group, name, params, value, ok := cutProperty(line)
	if !ok || name == "" || name == "BEGIN" || name == "END" {
		return ""
	}
	if group != "" {
		name = group + "." + name
	}
	for _, t := range propertyTypes(params) {
		name += ";TYPE=" + t
	}
	return name + ":" + plainEscapes.Replace(unquoted(params, value))
}

// propertyTypes returns the types of a property: TYPE=cell,voice or, in version 2.1, CELL;VOICE.
func propertyTypes(params string) (types []string) {
	for param := range strings.SplitSeq(params, ";") {
		name, values, named := strings.Cut(param, "=")
		if !named {
			values = name
		} else if !strings.EqualFold(strings.TrimSpace(name), vcard.ParamType) {
			continue
		}
		types = append(types, strings.FieldsFunc(values, func(c rune) bool { return strings.ContainsRune("\",:\\ \t", c) })...)
	}
	return types
}

// cutProperty splits a line into the group, the name in upper case, the parameters and the value. A colon inside quotes
// belongs to a parameter.
func cutProperty(line string) (group, name, params, value string, ok bool) {
	quoted := false
	at := strings.IndexFunc(line, func(c rune) bool {
		quoted = quoted != (c == '"')
		return c == ':' && !quoted
	})
	if at < 0 {
		return "", "", "", "", false
	}
	name, params, _ = strings.Cut(line[:at], ";")
	if i := strings.LastIndexByte(name, '.'); i >= 0 { // item1.TEL
		group, name = strings.TrimSpace(strings.ReplaceAll(name[:i], ".", "")), name[i+1:]
	}
	return group, strings.ToUpper(strings.TrimSpace(name)), params, line[at+1:], true
}

func isQuotedPrintable(params string) bool {
	return strings.Contains(strings.ToUpper(params), "QUOTED-PRINTABLE")
}

// unquoted decodes a value in quoted-printable. A malformed value stays as it is.
func unquoted(params, value string) string {
	if text, ok := decodedValue(params, value); ok {
		return text
	}
	return value
}

// decodedValue decodes quoted-printable, and then the property's character encoding. ok is false for a malformed value
// and for an unknown encoding.
func decodedValue(params, value string) (text string, ok bool) {
	if !isQuotedPrintable(params) {
		return value, true
	}
	b, err := io.ReadAll(quotedprintable.NewReader(strings.NewReader(value)))
	if err != nil {
		return "", false
	}
	return decodeCharset(charsetOf(params), string(b))
}

// charsetOf returns the parameter CHARSET of version 2.1; "" if there is none.
func charsetOf(params string) string {
	for param := range strings.SplitSeq(params, ";") {
		if name, value, _ := strings.Cut(param, "="); strings.EqualFold(strings.TrimSpace(name), "CHARSET") {
			return strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return ""
}

// RawValue returns the value of a property with its separators and backslashes.
func RawValue(line string) string {
	_, _, params, value, _ := cutProperty(line)
	return unquoted(params, value)
}

// CardText returns the value of a field as text.
func CardText(f *vcard.Field) string {
	return strings.TrimSpace(strings.ReplaceAll(f.Value, escapedSemicolon, ";"))
}

// CardPart returns one part of a structured value, such as the family name; "" if there is none.
func CardPart(f *vcard.Field, i int) string {
	parts := strings.Split(f.Value, ";")
	if i >= len(parts) {
		return ""
	}
	return strings.TrimSpace(strings.ReplaceAll(parts[i], escapedSemicolon, ";"))
}

// CardNumber returns the telephone number of a field.
func CardNumber(f *vcard.Field) string {
	text := CardText(f)
	if scheme, number, ok := strings.Cut(text, ":"); ok && strings.EqualFold(scheme, "tel") {
		return number
	}
	return text
}

// IsFax reports whether a number is the number of a fax.
func IsFax(f *vcard.Field) bool {
	return strings.Contains(strings.Join(f.Params.Types(), " "), "fax")
}
