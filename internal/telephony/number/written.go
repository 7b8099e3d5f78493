package number

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"soniq/internal/platform/db"
)

// Written returns a number as it was written, without what address books, spreadsheets and text editors add to it: invisible characters,
// punctuation around it, digits of other scripts, and other forms of spaces and dashes. It also removes the decimal part of a number that a
// program stored as a fraction. Every place that reads a number uses it. It returns "" for a number that a spreadsheet has rounded
// (4.47912E+11), because its last digits are lost.
func Written(text string) string {
	if !isASCII(text) {
		text = strings.Map(plainRune, norm.NFKC.String(text))
	}
	text = strings.TrimFunc(strings.Map(noControl, text), unicode.IsSpace)
	if roundedNumber.MatchString(text) {
		return ""
	}
	text = strings.TrimRightFunc(strings.TrimLeftFunc(text, isLeading), isTrailing)
	if m := fractionNumber.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return text
}

// roundedNumber matches a number in scientific notation. fractionNumber matches a whole number with a decimal part of zeros.
var (
	roundedNumber  = regexp.MustCompile(`^[='"]*[+-]?[0-9]+([.,][0-9]+)?[eE][+-]?[0-9]+["']*$`)
	fractionNumber = regexp.MustCompile(`^(\+?[0-9]{7,})[.,]0+$`)
)

// isASCII reports whether a text has printable ASCII characters only.
func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x7f || text[i] < ' ' {
			return false
		}
	}
	return true
}

// plainRune returns a character in ASCII, or -1 for one that cannot be seen.
func plainRune(r rune) rune {
	switch {
	case r < 0x7f:
		return r
	case unicode.In(r, unicode.Cf, unicode.Mn, unicode.Me), r == unicode.ReplacementChar:
		return -1
	case unicode.In(r, unicode.Zs, unicode.Zl, unicode.Zp):
		return ' '
	case unicode.Is(unicode.Pd, r), r == '\u2212': // minus sign
		return '-'
	case unicode.Is(unicode.Nd, r):
		return digitOf(r)
	}
	return r
}

// digitOf converts a decimal digit of any script to ASCII. The ten digits of a script follow each other in Unicode.
func digitOf(r rune) rune {
	before := rune(0)
	for unicode.Is(unicode.Nd, r-before-1) {
		before++
	}
	return '0' + before%10
}

// noControl replaces a control character by a space.
func noControl(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}

// isLeading reports whether a character in front of a number does not belong to it.
func isLeading(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("+(*#", r)
}

// isTrailing reports whether a character behind a number does not belong to it. A # can be the end of a code.
func isTrailing(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("#*", r)
}

// FromURL returns a number of a path or a query, in which a leading + arrives as a space unless it was encoded.
func FromURL(text string) string {
	if strings.HasPrefix(text, " ") {
		return "+" + strings.TrimSpace(text)
	}
	return text
}

// longestExtension is the highest number of digits of an extension, or of a short number, that is no complete number.
const longestExtension = 6

// Stored returns a number as calls and messages store it, for comparisons: in E.164, or unchanged if it is an extension, a short number or
// a name such as anonymous. Of a number with an extension behind it, it returns the number.
func Stored(text, country string) string {
	plain := Written(text)
	if len(plain) > longestExtension {
		if e164, ok := Parse(plain, country); ok {
			return e164
		}
		if e164, _, ok := read(plain, country); ok {
			return e164
		}
	}
	if plain == "" {
		return text
	}
	return plain
}

// StoreForms replaces the numbers of filters by their stored forms, in the country of an organisation. An unencoded + may be lost.
func StoreForms(ctx context.Context, q db.Querier, org string, filters ...*string) error {
	if !slices.ContainsFunc(filters, func(f *string) bool { return *f != "" }) {
		return nil
	}
	var country string
	if err := q.QueryRow(ctx, `SELECT country FROM orgs WHERE id = $1`, org).Scan(&country); err != nil && !db.IsNone(err) {
		return fmt.Errorf("read country: %w", err)
	}
	for _, f := range filters {
		*f = Stored(FromURL(*f), country)
	}
	return nil
}
