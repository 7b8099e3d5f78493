package adapter

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"slices"
	"strings"

	"soniq/internal/customer/contact"
)

// Texts and fields for vendors: contacts, notes and calls in the form that most vendors' fields have.

// contactFields are the fields of a contact that most vendors have.
type contactFields struct {
	first, last, name, company, title, email, phone, mobile string
}

// contactFieldsOf returns the fields of a contact. Vendors require a last name: without one, the first name or the
// full name is used, which may be the company's.
func contactFieldsOf(c contact.Contact) contactFields {
	p := contactFields{first: c.FirstName, last: c.LastName, name: c.Name, company: c.Company, title: c.Title}
	if p.last == "" {
		p.first, p.last = "", firstNonEmpty(p.first, c.Name)
	}
	if i := slices.IndexFunc(c.Emails, func(e contact.Email) bool { return e.Primary }); len(c.Emails) > 0 {
		p.email = c.Emails[max(0, i)].Value
	}
	for _, x := range c.Phones {
		switch {
		case !strings.HasPrefix(x.Number, "+"):
		case strings.EqualFold(x.Label, "mobile") && p.mobile == "":
			p.mobile = x.Number
		case p.phone == "" || x.Primary:
			p.phone = x.Number
		}
	}
	return p
}

// title returns a call in one line.
func (c CallLog) title() string {
	what := "Call to "
	if c.Direction == "inbound" {
		what = "Call from "
	}
	out := what + firstNonEmpty(c.Name, c.Phone, "somebody")
	if c.Status != "completed" {
		out += " (" + strings.ReplaceAll(c.Status, "_", " ") + ")"
	}
	return out
}

// text returns the details of a call, at most most bytes.
func (c CallLog) text(most int) string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	line("From", c.From)
	line("To", c.To)
	line("Agent", c.Agent)
	line("Disposition", c.Disposition)
	if c.Summary != "" {
		fmt.Fprintf(&b, "\n%s\n", c.Summary)
	}
	if c.Transcript != "" {
		fmt.Fprintf(&b, "\nTranscript\n%s\n", c.Transcript)
	}
	out := strings.TrimSpace(b.String())
	if len(out) > most {
		out = strings.ToValidUTF8(out[:most-3], "") + "…"
	}
	return out
}

// escapeHTML converts plain text for fields that are shown as HTML.
func escapeHTML(text string) string {
	return strings.ReplaceAll(html.EscapeString(text), "\n", "<br>")
}

// withAuthor returns the text of a note with its author.
func (n Note) withAuthor() string {
	if n.Author == "" {
		return n.Text
	}
	return n.Author + ": " + n.Text
}

// setNonEmpty sets a field if the value is not empty, so that unknown values do not delete the vendor's.
func setNonEmpty(fields map[string]any, name, value string) {
	if value != "" {
		fields[name] = value
	}
}

// phoneSpellings returns the usual spellings of a number, without duplicates.
func phoneSpellings(f contact.Formats) []string {
	var all []string
	for _, w := range []string{f.E164, f.International, f.National, f.Plain, f.NSN, f.Digits, f.Zeros} {
		if w != "" && !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	return all
}

func clip(text string) string {
	const most = 160
	if r := []rune(text); len(r) > most {
		return string(r[:most])
	}
	return text
}

// Digest returns a hash of the content of a log without the person and the record id.
func (c CallLog) Digest() string {
	c.Person, c.RecordID = Person{}, ""
	text, _ := json.Marshal(c)
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}
