package contact

import (
	"strings"

	"github.com/nyaruka/phonenumbers"

	"soniq/internal/telephony/number"
)

// phoneNumber is a parsed telephone number.
type phoneNumber struct {
	e164      string // "" if the number is incomplete
	extension string
	digits    string // if e164 is "", the written digits without leading zeros
	national  bool   // written without a country code
	nsn       string
	country   string
}

const (
	minDigits  = 7 // of a number that is found by its tail
	maxWritten = 60
)

// readNumber parses a number in the spellings of a country: E.164, national, with 00 or no prefix before the country
// code, with brackets, with an extension. Of an incomplete number, such as one without its area code, only the digits
// are kept.
func readNumber(text, country string) phoneNumber {
	if text = number.Written(text); len(text) > maxWritten {
		return phoneNumber{}
	}
	if n, ok := parseNumber(text, country); ok {
		return n
	}
	if d := digitsOf(text); !strings.ContainsAny(text, "+") && len(d) > 8 {
		if n, ok := parseNumber("+"+strings.TrimLeft(d, "0"), country); ok && isAssigned(n) { // 0044…, or 44… in another country
			return n
		}
	}
	return phoneNumber{digits: strings.TrimLeft(digitsOf(text), "0")}
}

// parsedNumbers caches parsed numbers, because those of one call are parsed several times within moments.
var parsedNumbers numberCache

// parseNumber parses a complete number.
func parseNumber(text, country string) (phoneNumber, bool) {
	return parsedNumbers.get(text, country, parseUncached)
}

func parseUncached(text, country string) (phoneNumber, bool) {
	n, err := phonenumbers.ParseAndKeepRawInput(text, country)
	if err != nil {
		return phoneNumber{}, false
	}
	possible := phonenumbers.IsPossibleNumberWithReason(n) == phonenumbers.IS_POSSIBLE
	out := phoneNumber{extension: n.GetExtension(), national: n.GetCountryCodeSource() == phonenumbers.PhoneNumber_FROM_DEFAULT_COUNTRY,
		nsn: phonenumbers.GetNationalSignificantNumber(n)}
	n.Extension = nil
	out.e164 = phonenumbers.Format(n, phonenumbers.E164)
	if !possible {
		former, ok := number.FormerSpelling(n)
		if !ok {
			return phoneNumber{}, false
		}
		out.e164 = former
	}
	out.digits = out.e164[1:]
	out.country = phonenumbers.GetRegionCodeForCountryCode(int(n.GetCountryCode()))
	return out, true
}

// isAssigned reports whether a number lies in a range that is in use.
func isAssigned(n phoneNumber) bool {
	p, err := phonenumbers.Parse(n.e164, "")
	return err == nil && phonenumbers.IsValidNumber(p)
}

// digitsOf returns the digits of a text, up to an extension.
func digitsOf(text string) string {
	out := make([]byte, 0, len(text))
	for i := range len(text) {
		switch c := text[i]; {
		case c >= '0' && c <= '9':
			out = append(out, c)
		case c == 'x' || c == 'X' || c == 'e' || c == 'E' || c == ';' || c == '#':
			if len(out) > 0 {
				return string(out)
			}
		}
	}
	return string(out)
}

// isSame reports whether two complete numbers are one telephone.
func (n phoneNumber) isSame(o phoneNumber) bool {
	return number.Identity(n.e164) == number.Identity(o.e164)
}

// isComplete reports whether the number can be dialled.
func (n phoneNumber) isComplete() bool { return n.e164 != "" }

// tail returns the last seven digits, by which incomplete numbers are found; "" if there are fewer.
func (n phoneNumber) tail() string {
	if len(n.digits) < minDigits {
		return ""
	}
	return n.digits[len(n.digits)-minDigits:]
}

// sharesTail reports whether one of two numbers is the end of the other and has at least seven digits.
func sharesTail(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return len(a) >= minDigits && strings.HasSuffix(b, a)
}

// phone returns the number in the form of a contact's number.
func (n phoneNumber) phone(p Phone) Phone {
	out := Phone{Number: n.e164, Label: p.Label, Primary: p.Primary, Extension: n.extension}
	if out.Extension == "" {
		out.Extension = p.Extension
	}
	if !n.isComplete() {
		out.Number = strings.TrimSpace(p.Number)
	}
	if written := strings.TrimSpace(p.Number); written != out.Number {
		out.Written = written
	}
	return out
}

// parse parses a stored number again. It prefers the original spelling, because it contains more information.
func (p Phone) parse(country string) phoneNumber {
	text := p.Number
	if p.Written != "" {
		text = p.Written
	}
	n := readNumber(text, country)
	if n.e164 != p.Number && strings.HasPrefix(p.Number, "+") {
		n = readNumber(p.Number, country)
	}
	if p.Extension != "" {
		n.extension = p.Extension
	}
	return n
}

// Formats is one number in the formats that systems store.
type Formats struct {
	E164          string // +442079460018
	International string // +44 20 7946 0018
	National      string // 020 7946 0018
	Plain         string // 02079460018
	NSN           string // 2079460018
	Digits        string // 442079460018
	Zeros         string // 00442079460018
}

// formats returns a complete number in all formats.
func (n phoneNumber) formats() Formats {
	p, err := phonenumbers.Parse(n.e164, "")
	if err != nil {
		return Formats{E164: n.e164, NSN: n.nsn}
	}
	f := Formats{E164: n.e164, NSN: n.nsn, Digits: n.e164[1:], Zeros: "00" + n.e164[1:],
		International: phonenumbers.Format(p, phonenumbers.INTERNATIONAL), National: phonenumbers.Format(p, phonenumbers.NATIONAL)}
	f.Plain = digitsOf(f.National)
	return f
}
