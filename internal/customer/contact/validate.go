package contact

import (
	"fmt"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"soniq/internal/platform/op"
	"soniq/internal/telephony/number"
)

// Limits of a contact.
const (
	maxName   = 120
	maxPhones = 20
	maxEmails = 20
	maxTags   = 50
	maxTag    = 40
	maxCustom = 50
	maxValue  = 1000
)

// check returns the violations of a contact and normalises it for storage. An incomplete number is a violation,
// except in a contact from a file.
func (c *Contact) check(country string, lenient bool) []op.Violation {
	var wrong []op.Violation
	for _, f := range []struct {
		name string
		text *string
	}{{"first_name", &c.FirstName}, {"last_name", &c.LastName}, {"company", &c.Company}, {"title", &c.Title}} {
		if *f.text = normalizeText(*f.text); utf8.RuneCountInString(*f.text) > maxName {
			wrong = append(wrong, op.Field(f.name, "invalid_length", fmt.Sprintf("may have %d characters", maxName)))
		}
	}
	wrong = append(wrong, c.checkPhones(country, lenient)...)
	wrong = append(wrong, c.checkEmails()...)
	wrong = append(wrong, c.checkTags()...)
	wrong = append(wrong, c.checkCustom()...)
	if c.FirstName == "" && c.LastName == "" && c.Company == "" && len(c.Phones) == 0 && len(c.Emails) == 0 {
		wrong = append(wrong, op.Field("first_name", "required", "give a name, a company, a number or an e-mail address"))
	}
	c.complete()
	return wrong
}

// normalizeText makes a text one line: control characters and runs of spaces become one space.
func normalizeText(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, ""), func(r rune) bool {
		return unicode.IsSpace(r) ||
			unicode.IsControl(r)
	}), " ")
}

func (c *Contact) checkPhones(country string, lenient bool) (wrong []op.Violation) {
	if len(c.Phones) > maxPhones {
		return []op.Violation{op.Field("phones", "too_many", fmt.Sprintf("may have %d", maxPhones))}
	}
	kept := []Phone{}
	for i, p := range c.Phones {
		n := readNumber(normalizeText(p.Number), country)
		if !n.isComplete() && (!lenient || !isPhoneText(p.Number)) {
			wrong = append(wrong, op.Field(fmt.Sprintf("phones.%d.number", i), "invalid_e164", numberFault(p.Number, country)))
			continue
		}
		if !digitsOnly(p.Extension) {
			wrong = append(wrong, op.Field(fmt.Sprintf("phones.%d.extension", i), "invalid_value", "must be digits"))
		}
		next := n.phone(Phone{Number: normalizeText(p.Number), Label: normalizeText(p.Label), Primary: p.Primary, Extension: p.Extension})
		if next.Written == "" && strings.HasPrefix(p.Number, "+") { // sent back by the client as it was shown
			next.Written = keepWritten(p.Written, n, country)
		}
		if !slices.ContainsFunc(kept, func(k Phone) bool { return k.Number == next.Number && k.Extension == next.Extension }) {
			kept = append(kept, next)
		}
	}
	c.Phones = kept
	return wrong
}

// phoneText matches an incomplete number: digits and the punctuation of numbers, with an extension.
var phoneText = regexp.MustCompile(`(?i)^\+?[0-9 ().\-/*#,]*((x|ext|extension|durchwahl|dw|poste|interno)[.: ]*[0-9]+)?$`)

// minPartial is the lowest number of digits of an incomplete number, such as an extension.
const minPartial = 3

// isPhoneText reports whether a text is a number, which may be incomplete.
func isPhoneText(text string) bool {
	plain := number.Written(normalizeText(text))
	digits := len(digitsOf(plain))
	return digits >= minPartial && digits <= maxDigits && phoneText.MatchString(plain)
}

// maxDigits is the highest number of digits of a number with the digits in front of it (E.164 has 15).
const maxDigits = 20

// numberFault returns why a text is no number.
func numberFault(text, country string) string {
	if text != "" && number.Written(text) == "" && strings.ContainsAny(text, "eE") {
		return "the digits of the number are lost, because a spreadsheet has rounded it: format the column as text and export it again"
	}
	return "not a valid number for " + country
}

// keepWritten returns the original spelling if it still means the same number.
func keepWritten(written string, n phoneNumber, country string) string {
	if again := readNumber(written, country); written != "" && again.e164 == n.e164 {
		return written
	}
	return ""
}

func digitsOnly(text string) bool { return strings.Trim(text, "0123456789") == "" }

func (c *Contact) checkEmails() (wrong []op.Violation) {
	if len(c.Emails) > maxEmails {
		return []op.Violation{op.Field("emails", "too_many", fmt.Sprintf("may have %d", maxEmails))}
	}
	kept := []Email{}
	for i, e := range c.Emails {
		e.Value, e.Label = normalizeText(e.Value), normalizeText(e.Label)
		if a, err := mail.ParseAddress(e.Value); err != nil || a.Address != e.Value || len(e.Value) > 254 {
			wrong = append(wrong, op.Field(fmt.Sprintf("emails.%d.value", i), "invalid_email", "not an e-mail address"))
			continue
		}
		if !slices.ContainsFunc(kept, func(k Email) bool { return strings.EqualFold(k.Value, e.Value) }) {
			kept = append(kept, e)
		}
	}
	c.Emails = kept
	return wrong
}

func (c *Contact) checkTags() []op.Violation {
	kept := []string{}
	for _, t := range c.Tags {
		t = strings.ToLower(normalizeText(t))
		if t == "" || utf8.RuneCountInString(t) > maxTag || strings.ContainsAny(t, `"\`) {
			return []op.Violation{op.Field("tags", "invalid_value",
				fmt.Sprintf("a tag has 1 to %d characters and neither quotes nor backslashes", maxTag))}
		}
		if !slices.Contains(kept, t) {
			kept = append(kept, t)
		}
	}
	slices.Sort(kept)
	if c.Tags = kept; len(kept) > maxTags {
		return []op.Violation{op.Field("tags", "too_many", fmt.Sprintf("may have %d", maxTags))}
	}
	return nil
}

func (c *Contact) checkCustom() []op.Violation {
	if c.Custom == nil {
		c.Custom = map[string]string{}
	}
	if len(c.Custom) > maxCustom {
		return []op.Violation{op.Field("custom", "too_many", fmt.Sprintf("may have %d members", maxCustom))}
	}
	for name, value := range c.Custom {
		if name == "" || len(name) > maxName || utf8.RuneCountInString(value) > maxValue {
			return []op.Violation{op.Field("custom", "invalid_length", fmt.Sprintf("names have 1 to %d bytes, values up to %d characters",
				maxName, maxValue))}
		}
	}
	return nil
}
