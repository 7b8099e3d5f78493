package contact

import (
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// A number is a telephone number as it was written, understood.
type number struct {
	e164      string // "" where it is no whole number
	extension string
	digits    string // of what was written, without leading zeros, where e164 is ""
	domestic  bool   // written without a country code
	nsn       string
	country   string
}

const (
	minDigits  = 7 // of what is found by its end
	maxWritten = 60
)

// readNumber understands a number as people write it in a country: E.164, national, with 00 or no prefix before the country
// code, with brackets, with an extension. Where it is no whole number, such as one without its area code, digits are kept.
func readNumber(text, country string) number {
	text = strings.TrimSpace(text)
	if len(text) > maxWritten {
		return number{}
	}
	if n, ok := parse(text, country); ok {
		return n
	}
	if d := digitsOf(text); !strings.ContainsAny(text, "+") && len(d) > 8 {
		if n, ok := parse("+"+strings.TrimLeft(d, "0"), country); ok && known(n) { // 0044…, or 44… in another country
			return n
		}
	}
	return number{digits: strings.TrimLeft(digitsOf(text), "0")}
}

// parsed are the numbers that were understood lately: those of one call are asked for several times within moments.
var parsed recent

// parse understands a number that is written in full.
func parse(text, country string) (number, bool) {
	return parsed.get(text, country, parseAnew)
}

func parseAnew(text, country string) (number, bool) {
	n, err := phonenumbers.ParseAndKeepRawInput(text, country)
	if err != nil || phonenumbers.IsPossibleNumberWithReason(n) != phonenumbers.IS_POSSIBLE {
		return number{}, false
	}
	out := number{extension: n.GetExtension(), domestic: n.GetCountryCodeSource() == phonenumbers.PhoneNumber_FROM_DEFAULT_COUNTRY,
		nsn: phonenumbers.GetNationalSignificantNumber(n)}
	n.Extension = nil
	out.e164 = phonenumbers.Format(n, phonenumbers.E164)
	out.digits = out.e164[1:]
	out.country = phonenumbers.GetRegionCodeForCountryCode(int(n.GetCountryCode()))
	return out, true
}

// known reports whether a number lies in a range that is in use.
func known(n number) bool {
	p, err := phonenumbers.Parse(n.e164, "")
	return err == nil && phonenumbers.IsValidNumber(p)
}

// digitsOf keeps digits, up to an extension.
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

// whole reports whether the number can be dialled.
func (n number) whole() bool { return n.e164 != "" }

// tail is what numbers without their beginning are found by.
func (n number) tail() string {
	if len(n.digits) < minDigits {
		return ""
	}
	return n.digits[len(n.digits)-minDigits:]
}

// endsAlike reports whether one of two numbers is the end of the other, and long enough to mean something.
func endsAlike(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return len(a) >= minDigits && strings.HasSuffix(b, a)
}

// phone is the number as a contact shows it.
func (n number) phone(p Phone) Phone {
	out := Phone{Number: n.e164, Label: p.Label, Primary: p.Primary, Extension: n.extension}
	if out.Extension == "" {
		out.Extension = p.Extension
	}
	if !n.whole() {
		out.Number = strings.TrimSpace(p.Number)
	}
	if written := strings.TrimSpace(p.Number); written != out.Number {
		out.Written = written
	}
	return out
}

// again is the number of a phone that is kept: read as it was written, for that says most.
func (p Phone) again(country string) number {
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

// Formats is one number in the ways systems keep it.
type Formats struct {
	E164          string // +442079460018
	International string // +44 20 7946 0018
	National      string // 020 7946 0018
	Plain         string // 02079460018
	NSN           string // 2079460018
	Digits        string // 442079460018
	Zeros         string // 00442079460018
}

// formats writes a whole number in every way.
func (n number) formats() Formats {
	p, err := phonenumbers.Parse(n.e164, "")
	if err != nil {
		return Formats{E164: n.e164, NSN: n.nsn}
	}
	f := Formats{E164: n.e164, NSN: n.nsn, Digits: n.e164[1:], Zeros: "00" + n.e164[1:],
		International: phonenumbers.Format(p, phonenumbers.INTERNATIONAL), National: phonenumbers.Format(p, phonenumbers.NATIONAL)}
	f.Plain = digitsOf(f.National)
	return f
}
