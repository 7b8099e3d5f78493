package carrier

import (
	"strconv"
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// international is the emergency number of the European Union and of every GSM phone.
const international = "112"

// outsideLine are digits people dial first to get an outside line from an office phone.
var outsideLine = []string{"", "0", "9", "00", "99"}

// Emergency recognises an emergency number of the country in what was dialled: plain, behind the digits for an
// outside line, or with the country's code in front. It returns the number to dial, such as 112.
func Emergency(country, dialled string) (number string, ok bool) {
	digits := bare(dialled)
	if code, international := strings.CutPrefix(digits, "+"); international {
		own := strconv.Itoa(phonenumbers.GetCountryCodeForRegion(country))
		if rest, ok := strings.CutPrefix(code, own); ok && isEmergency(country, rest) {
			return rest, true
		}
		return code, isEmergency(country, code)
	}
	for _, prefix := range outsideLine {
		rest, ok := strings.CutPrefix(digits, prefix)
		if ok && isEmergency(country, rest) {
			return rest, true
		}
	}
	return "", false
}

func isEmergency(country, digits string) bool {
	return digits == international || phonenumbers.IsEmergencyNumber(digits, country)
}

// ReservedExtension reports whether an extension would be taken for an emergency number.
func ReservedExtension(country, extension string) bool {
	_, ok := Emergency(country, extension)
	return ok
}

// bare removes what people and phones put around digits.
func bare(dialled string) string {
	dialled = strings.TrimPrefix(strings.ToLower(strings.TrimSpace(dialled)), "tel:")
	dialled, _, _ = strings.Cut(dialled, ";")
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" -./()\u00a0", r) {
			return -1
		}
		return r
	}, dialled)
}
