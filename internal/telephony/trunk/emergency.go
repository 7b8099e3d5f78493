package trunk

import (
	"strconv"
	"strings"

	"github.com/nyaruka/phonenumbers"

	"soniq/internal/telephony/number"
	"soniq/internal/telephony/number/shortnumber"
)

// outsideLinePrefixes are digits that users of office phones dial first to get an outside line.
var outsideLinePrefixes = []string{"", "0", "9", "00", "99"}

// EmergencyNumber recognises an emergency number of the country in the dialled digits: alone, after the digits for an
// outside line, or after the country code. It returns the number to dial, such as 112.
func EmergencyNumber(country, dialled string) (number string, ok bool) {
	digits := normalizeDialled(dialled)
	if code, international := strings.CutPrefix(digits, "+"); international {
		if rest, ok := strings.CutPrefix(digits, callingCode(country)); ok && shortnumber.IsEmergency(country, rest) {
			return rest, true
		}
		return code, shortnumber.IsEmergency(country, code)
	}
	for _, prefix := range outsideLinePrefixes {
		rest, ok := strings.CutPrefix(digits, prefix)
		if ok && shortnumber.IsEmergency(country, rest) {
			return rest, true
		}
	}
	return "", false
}

// callingCode returns the calling code of a country, such as +49; "+0" if the country is unknown.
func callingCode(country string) string {
	return "+" + strconv.Itoa(phonenumbers.GetCountryCodeForRegion(country))
}

// emergencyTestNumber reaches, in North America, a service that reads back the number and location that emergency
// services would receive.
const emergencyTestNumber = "933"

// EmergencyTest reports whether the dialled digits are the number that tests emergency calls. Only countries with
// code +1 have one.
func EmergencyTest(country, dialled string) bool {
	return phonenumbers.GetCountryCodeForRegion(country) == 1 && normalizeDialled(dialled) == emergencyTestNumber
}

// IsEmergencyCall reports whether the dialled digits are an emergency number of the country, or the number that tests
// emergency calls.
func IsEmergencyCall(country, dialled string) bool {
	_, ok := EmergencyNumber(country, dialled)
	return ok || EmergencyTest(country, dialled)
}

// ReservedExtension reports whether an extension would be taken for an emergency number, for the number that tests
// emergency calls, or for a crisis line. A call to it leaves the organisation, even if a user has the extension from
// before.
func ReservedExtension(country, extension string) bool {
	if IsEmergencyCall(country, extension) {
		return true
	}
	s, ok := shortnumber.ServiceOf(country, normalizeDialled(extension))
	return ok && s.Crisis
}

// normalizeDialled returns the dialled digits without tel:, URI parameters, blanks and punctuation, in ASCII.
func normalizeDialled(dialled string) string {
	dialled = strings.TrimPrefix(strings.ToLower(number.Written(dialled)), "tel:")
	dialled, _, _ = strings.Cut(dialled, ";")
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" -./()", r) {
			return -1
		}
		return r
	}, dialled)
}
