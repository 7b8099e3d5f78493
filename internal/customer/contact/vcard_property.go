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
	group, name, params = standardProperty(group, strings.ToUpper(strings.TrimSpace(name)), params)
	return group, name, params, line[at+1:], true
}

// otherNames maps names of properties that vCard does not know, as some programs write them, to those of numbers and addresses.
var otherNames = map[string]string{"PHONE": vcard.FieldTelephone, "TELEPHONE": vcard.FieldTelephone,
	"TELEFON": vcard.FieldTelephone, "FON": vcard.FieldTelephone,
	"MOBILE": vcard.FieldTelephone, "CELL": vcard.FieldTelephone, "CELLPHONE": vcard.FieldTelephone,
	"HANDY": vcard.FieldTelephone, "FAX": vcard.FieldTelephone,
	"MAIL": vcard.FieldEmail, "E-MAIL": vcard.FieldEmail, "EMAILADDRESS": vcard.FieldEmail}

// typesOfNames are the types that names stand for: those of properties, such as MOBILE, and those behind a point, such as PHONE.WORK.
var typesOfNames = map[string]string{"MOBILE": "CELL", "CELL": "CELL", "CELLPHONE": "CELL", "HANDY": "CELL", "FAX": "FAX",
	"WORK": "WORK", "BUSINESS": "WORK", "OFFICE": "WORK", "HOME": "HOME", "PRIVATE": "HOME",
	"MAIN": "MAIN", "OTHER": "OTHER", "PAGER": "PAGER", "VOICE": "VOICE"}

// standardProperty returns a property whose name is in otherNames as TEL or EMAIL with a type. The name may have the type behind it, as
// in PHONE.WORK. Others stay as they are.
func standardProperty(group, name, params string) (string, string, string) {
	before := strings.ToUpper(group)
	standard := otherNames[before]
	if before == vcard.FieldTelephone || before == vcard.FieldEmail {
		standard = before
	}
	kind := typesOfNames[name]
	switch {
	case standard != "" && kind != "":
		group = ""
	case otherNames[name] != "":
		standard = otherNames[name]
	default:
		return group, name, params
	}
	if kind != "" {
		params = strings.TrimSuffix("TYPE="+kind+";"+params, ";")
	}
	return group, standard, params
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
