package adapter

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/emersion/go-vcard"

	"soniq/internal/customer/contact"
)

// card is a vCard as its unfolded lines (RFC 6350 §3.2). Lines that are not understood are kept unchanged. Lines are edited instead of
// encoding a decoded card. The encoder of the library drops the order of the properties and the escapes that it does not know.
type card []string

// cardFields are the fields of a card that we write. Its JSON is stored as the base of the next merge.
type cardFields struct {
	Name    string   `json:"name"` // FN
	Parts   string   `json:"parts"`
	Company string   `json:"company"`
	Title   string   `json:"title"`
	Phones  []string `json:"phones"` // as written in the card
	Emails  []string `json:"emails"`
	Tags    []string `json:"tags"`
}

// parseCard splits a card into its unfolded lines.
func parseCard(text string) card {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.NewReplacer("\n ", "", "\n\t", "").Replace(text)
	return card(slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return strings.TrimSpace(l) == "" }))
}

// parseProperty decodes one line. The field is empty if the line is no property.
func parseProperty(line string) (name string, f vcard.Field) {
	for name, fields := range contact.DecodeCard([]string{line}) {
		return name, *fields[0]
	}
	return "", f
}

// fields reads the fields of the card that we write.
func (c card) fields() (s cardFields) {
	read := contact.DecodeCard(c)
	text := func(property string) string {
		if f := read.Get(property); f != nil {
			return contact.CardText(f)
		}
		return ""
	}
	s.Name, s.Title = text(vcard.FieldFormattedName), text(vcard.FieldTitle)
	if f := read.Get(vcard.FieldOrganization); f != nil {
		s.Company = contact.CardPart(f, 0)
	}
	for _, line := range c {
		if name, _ := parseProperty(line); name == vcard.FieldName {
			s.Parts = contact.RawValue(line)
		}
	}
	for _, f := range read[vcard.FieldTelephone] {
		if !contact.IsFax(f) {
			s.Phones = append(s.Phones, contact.CardNumber(f))
		}
	}
	for _, f := range read[vcard.FieldEmail] {
		s.Emails = append(s.Emails, contact.CardText(f))
	}
	for _, f := range read[vcard.FieldCategories] {
		for t := range strings.SplitSeq(contact.CardText(f), ",") {
			s.Tags = append(s.Tags, strings.TrimSpace(t))
		}
	}
	return s
}

// escapeValue writes a text as a value.
func escapeValue(text string) string {
	return strings.NewReplacer(`\`, `\\`, "\r\n", `\n`, "\n", `\n`, "\r", `\n`, ",", `\,`, ";", `\;`).Replace(text)
}

// cardFieldsOf returns the fields of a contact.
func cardFieldsOf(c contact.Contact) cardFields {
	s := cardFields{Name: c.Name, Parts: escapeValue(c.LastName) + ";" + escapeValue(c.FirstName) + ";;;", Company: c.Company,
		Title: c.Title, Tags: c.Tags}
	for _, p := range c.Phones {
		s.Phones = append(s.Phones, p.Number)
	}
	for _, e := range c.Emails {
		s.Emails = append(s.Emails, e.Value)
	}
	return s
}

// mergeFields is a three-way merge of a contact and its card with their last common content as the base. A field that
// was changed on both sides keeps the card's value and is returned as a conflict. base is nil if there was no earlier
// write.
func (s cardFields) mergeFields(theirs cardFields, base *cardFields) (out cardFields, conflicts []string) {
	was := cardFields{}
	if base != nil {
		was = *base
	}
	one := func(name, ours, there, before string) string {
		switch {
		case ours == there, ours == before && base != nil:
			return there
		case there == before, base == nil:
			return ours
		}
		conflicts = append(conflicts, name)
		return there
	}
	out.Name, out.Parts = one("name", s.Name, theirs.Name, was.Name), one("name", s.Parts, theirs.Parts, was.Parts)
	if out.Name == theirs.Name && theirs.Name != s.Name {
		out.Parts = theirs.Parts
	}
	out.Company, out.Title = one("company", s.Company, theirs.Company, was.Company), one("title", s.Title, theirs.Title, was.Title)
	out.Phones = mergeList(s.Phones, theirs.Phones, was.Phones, contact.SameNumber)
	out.Emails = mergeList(s.Emails, theirs.Emails, was.Emails, strings.EqualFold)
	out.Tags = mergeList(s.Tags, theirs.Tags, was.Tags, strings.EqualFold)
	return out, slices.Compact(conflicts)
}

// mergeList returns the entries of the card, without those that the contact removed since the base, and with those it
// added.
func mergeList(ours, theirs, before []string, same func(ours, theirs string) bool) (out []string) {
	has := func(list []string, x string) bool {
		return slices.ContainsFunc(list, func(y string) bool { return same(x, y) || same(y, x) })
	}
	for _, x := range theirs {
		if !has(before, x) || has(ours, x) {
			out = append(out, x)
		}
	}
	for _, x := range ours {
		if !has(theirs, x) && !has(before, x) {
			out = append(out, x)
		}
	}
	return out
}

// withFields returns the card with the given fields. All other lines are unchanged.
func (c card) withFields(s cardFields) card {
	was, out := c.fields(), card{}
	orphans := map[string]bool{} // groups whose number or address is removed
	for _, line := range c {
		if strings.EqualFold(strings.TrimSpace(line), "END:VCARD") {
			continue
		}
		name, f := parseProperty(line)
		gone := false
		switch name {
		case vcard.FieldFormattedName, vcard.FieldName, vcard.FieldTitle, vcard.FieldCategories:
			continue
		case vcard.FieldOrganization:
			gone = s.Company != was.Company
		case vcard.FieldTelephone:
			gone = !contact.IsFax(&f) && !slices.Contains(s.Phones, contact.CardNumber(&f))
		case vcard.FieldEmail:
			gone = !slices.Contains(s.Emails, contact.CardText(&f))
		}
		if gone {
			orphans[f.Group] = f.Group != ""
			continue
		}
		out = append(out, line)
	}
	out = slices.DeleteFunc(out, func(line string) bool { _, f := parseProperty(line); return orphans[f.Group] })
	return append(append(out, s.propertyLines(was)...), "END:VCARD")
}

// propertyLines returns the lines for fields that are new compared with was, and for properties that occur once.
func (s cardFields) propertyLines(was cardFields) (out []string) {
	put := func(name, value string) {
		if value != "" {
			out = append(out, name+":"+value)
		}
	}
	put("FN", escapeValue(s.Name))
	put("N", s.Parts)
	if s.Company != was.Company {
		put("ORG", escapeValue(s.Company))
	}
	put("TITLE", escapeValue(s.Title))
	for _, p := range s.Phones {
		if !slices.Contains(was.Phones, p) {
			put("TEL;TYPE=VOICE", escapeValue(p))
		}
	}
	for _, e := range s.Emails {
		if !slices.Contains(was.Emails, e) {
			put("EMAIL;TYPE=INTERNET", escapeValue(e))
		}
	}
	tags := make([]string, len(s.Tags))
	for i, t := range s.Tags {
		tags[i] = escapeValue(t)
	}
	put("CATEGORIES", strings.Join(tags, ","))
	return out
}

// newCard returns a card for a contact that has none.
func newCard(id string, s cardFields) card {
	return card{"BEGIN:VCARD", "VERSION:3.0", "PRODID:-//soniq//EN", "UID:" + id, "END:VCARD"}.withFields(s)
}

// encode returns the card as it is sent, folded into lines of 75 bytes (RFC 6350 §3.2).
func (c card) encode() string {
	const most = 75
	var b strings.Builder
	for _, line := range c {
		for room := most; len(line) > room; room = most - 1 {
			at := room
			for at > 0 && !utf8.RuneStart(line[at]) {
				at--
			}
			b.WriteString(line[:at] + "\r\n ")
			line = line[at:]
		}
		b.WriteString(line + "\r\n")
	}
	return b.String()
}

// baseJSON returns the fields as JSON, to be stored as the base of the next merge.
func (s cardFields) baseJSON() string {
	text, _ := json.Marshal(s)
	return string(text)
}
