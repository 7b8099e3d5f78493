package redact

import (
	"slices"
	"strconv"
	"strings"
)

// Check digits of numbers.

// luhn checks a number by ISO/IEC 7812-1 annex B.
func luhn(digits string) bool {
	sum := 0
	for i := range len(digits) {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			d = d*2/10 + d*2%10
		}
		sum += d
	}
	return sum%10 == 0 && strings.Trim(digits, "0") != ""
}

// scheme has the prefixes of the numbers of a card scheme and their lengths.
type scheme struct {
	from, to string // prefixes, of the same length
	lengths  []int
}

// schemes are the card schemes (ISO/IEC 7812). Lengths that are no longer issued are left out.
var schemes = []scheme{
	{"4", "4", []int{16, 19}},                   // Visa
	{"51", "55", []int{16}},                     // Mastercard
	{"2221", "2720", []int{16}},                 // Mastercard
	{"34", "34", []int{15}},                     // American Express
	{"37", "37", []int{15}},                     // American Express
	{"300", "305", []int{14, 16}},               // Diners Club
	{"36", "36", []int{14, 16}},                 // Diners Club
	{"38", "39", []int{14, 16}},                 // Diners Club
	{"6011", "6011", []int{16, 19}},             // Discover
	{"644", "659", []int{16, 19}},               // Discover
	{"3528", "3589", []int{16}},                 // JCB
	{"62", "62", []int{16, 17, 18, 19}},         // UnionPay
	{"5018", "5020", []int{13, 15, 16, 18, 19}}, // Maestro
	{"5038", "5038", []int{13, 15, 16, 18, 19}}, // Maestro
	{"5612", "5893", []int{16, 18, 19}},         // Maestro
	{"6304", "6304", []int{16, 18, 19}},         // Maestro
	{"6759", "6763", []int{16, 18, 19}},         // Maestro, girocard
	{"2200", "2204", []int{16}},                 // Mir
	{"9792", "9792", []int{16}},                 // Troy
	{"60", "60", []int{16}},                     // RuPay
	{"81", "82", []int{16}},                     // RuPay
}

// isCardNumber reports whether digits are the number of a card of a known scheme.
func isCardNumber(digits string) bool {
	for _, s := range schemes {
		n := len(s.from)
		if len(digits) > n && digits[:n] >= s.from && digits[:n] <= s.to && slices.Contains(s.lengths, len(digits)) {
			return luhn(digits)
		}
	}
	return false
}

// ibanLengths has the length of an IBAN by country (SWIFT IBAN registry).
var ibanLengths = map[string]int{"AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BR": 29,
	"BY": 28, "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18, "FO": 18,
	"FR": 27, "GB": 22,
	"GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30,
	"KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MR": 27,
	"MT": 31, "MU": 30,
	"NL": 18, "NO": 15, "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "SA": 24, "SC": 31, "SE": 24, "SI": 19,
	"SK": 24, "SM": 27, "ST": 25, "SV": 28, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20}

// isIBAN checks an IBAN by ISO 13616 and ISO 7064 mod 97-10.
func isIBAN(s string) bool {
	return len(s) > 4 && ibanLengths[s[:2]] == len(s) && mod97(s[4:]+s[:4]) == 1
}

// mod97 returns the remainder of a number with letters, which count from A = 10.
func mod97(s string) int {
	r := 0
	for _, c := range s {
		if c >= 'A' && c <= 'Z' {
			r = (r*100 + int(c-'A') + 10) % 97
		} else {
			r = (r*10 + int(c-'0')) % 97
		}
	}
	return r
}

// weighted returns the sum of digits multiplied by weights.
func weighted(digits string, weights ...int) int {
	sum := 0
	for i, w := range weights {
		sum += int(digits[i]-'0') * w
	}
	return sum
}

// isRouting checks an ABA routing number.
func isRouting(d string) bool {
	return weighted(d, 3, 7, 1, 3, 7, 1, 3, 7, 1)%10 == 0 && d != "000000000"
}

// isNHS checks a number of the National Health Service (GB).
func isNHS(d string) bool {
	check := 11 - weighted(d, 10, 9, 8, 7, 6, 5, 4, 3, 2)%11
	return check%11 == int(d[9]-'0') && check != 10
}

// isKVNR checks a German health insurance number: a letter and nine digits.
func isKVNR(s string) bool {
	letter := int(s[0]-'A') + 1
	d := strconv.Itoa(letter/10) + strconv.Itoa(letter%10) + s[1:]
	sum := 0
	for i := range 10 {
		x := int(d[i]-'0') * (1 + i%2)
		sum += x/10 + x%10
	}
	return sum%10 == int(s[9]-'0')
}

// isVSNR checks a German pension insurance number: area, birthday, letter, serial number, check digit.
func isVSNR(s string) bool {
	letter := int(s[8]-'A') + 1
	d := s[:8] + strconv.Itoa(letter/10) + strconv.Itoa(letter%10) + s[9:]
	sum := 0
	for i, w := range []int{2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1} {
		x := int(d[i]-'0') * w
		sum += x/10 + x%10
	}
	return sum%10 == int(s[11]-'0')
}

// isSteuerID checks a German tax number by ISO 7064 mod 11,10.
func isSteuerID(d string) bool {
	p := 10
	for i := range 10 {
		if p = (p + int(d[i]-'0')) % 10; p == 0 {
			p = 10
		}
		p = p * 2 % 11
	}
	return d[0] != '0' && (11-p)%10 == int(d[10]-'0')
}

// isSSN checks the parts of a US social security number.
func isSSN(d string) bool {
	return d[:3] != "000" && d[:3] != "666" && d[0] != '9' && d[3:5] != "00" && d[5:] != "0000"
}

// isAHV checks a Swiss social insurance number (EAN-13).
func isAHV(d string) bool {
	return strings.HasPrefix(d, "756") && (10-weighted(d, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3)%10)%10 == int(d[12]-'0')
}

// isSVNR checks an Austrian social insurance number.
func isSVNR(d string) bool {
	return d[0] != '0' && weighted(d, 3, 7, 9, 0, 5, 8, 4, 2, 1, 6)%11 == int(d[3]-'0')
}

// isNIR checks a French social security number with its key.
func isNIR(d string) bool {
	n, _ := strconv.ParseInt(d[:13], 10, 64)
	key, _ := strconv.ParseInt(d[13:], 10, 64)
	month := d[3:5]
	return (d[0] == '1' || d[0] == '2') && (month >= "01" && month <= "12" || month >= "20") && 97-n%97 == key
}

// isBSN checks a Dutch citizen number.
func isBSN(d string) bool {
	return weighted(d, 9, 8, 7, 6, 5, 4, 3, 2, -1)%11 == 0 && d != "000000000"
}

// isPESEL checks a Polish citizen number.
func isPESEL(d string) bool { return weighted(d, 1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)%10 == 0 }

// isDNI checks a Spanish identity number: eight digits and a letter.
func isDNI(s string) bool {
	n, _ := strconv.Atoi(s[:8])
	return "TRWAGMYFPDXBNJZSQVHLCKE"[n%23] == s[8]
}

// isRijksregister checks a Belgian citizen number, of people born before and since 2000.
func isRijksregister(d string) bool {
	n, _ := strconv.ParseInt(d[:9], 10, 64)
	check, _ := strconv.ParseInt(d[9:], 10, 64)
	return 97-n%97 == check || 97-(2_000_000_000+n)%97 == check
}

// isCodiceFiscale checks an Italian tax code.
func isCodiceFiscale(s string) bool {
	odd := []int{1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23}
	sum := 0
	for i := range 15 {
		v := int(s[i] - '0')
		if s[i] >= 'A' {
			v = int(s[i] - 'A')
		}
		if i%2 == 0 {
			v = odd[v]
		}
		sum += v
	}
	return byte('A'+sum%26) == s[15]
}
