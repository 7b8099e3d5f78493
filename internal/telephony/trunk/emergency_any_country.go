package trunk

import (
	"strings"

	"soniq/internal/telephony/number/shortnumber"
)

// allEmergencyNumbers has the emergency numbers of all countries: those of our table and those of the phone library, except
// numbers of four digits that begin with 13.
var allEmergencyNumbers = func() map[string]bool {
	all := map[string]bool{}
	for _, n := range strings.Fields(`
	000 001 002 003 01 011 019 02 022 03 033 050 060 065 066 068 080 085 088 100 101 10111 10177 102 103 104 105 106 107 108 110 111
	112 1122 113 114 115 116 117 118 119 120 122 1220 123 124 125 127 128 129 1298 13 130 131 132 133 14 140 144 1444 15 150 151 152
	153 154 155 156 157 158 159 16 160 166 1669 17 170 171 172 1730 175 177 18 180 188 19 190 191 192 193 194 195 197 198 199 211 2611 311
	333 355 511 555 666 819 888 90 90000 901 902 903 91 911 912 913 917 919 92 922 93 933 939 94 955 977 990 991 992 993 994 995 996
	997 998 999 9999`) {
		all[n] = true
	}
	for n := range shortnumber.Emergency() {
		all[n] = true
	}
	return all
}()

// longestEmergency is the highest number of digits that may reach an emergency service: a country code and the
// longest number.
const longestEmergency = 8

// MaybeEmergency reports whether the dialled digits may reach an emergency service in any country, even if they are
// an extension or another number elsewhere. It is cheap, because it runs for calls that are being rejected.
func MaybeEmergency(dialled string) bool {
	if len(dialled) > 4*longestEmergency {
		return false
	}
	digits := normalizeDialled(dialled)
	if code, ok := strings.CutPrefix(digits, "+"); ok {
		return len(code) <= longestEmergency && (isEmergencyAfterPrefix(code, 1) || isEmergencyAfterPrefix(code, 2) ||
			isEmergencyAfterPrefix(code, 3) || isAnyEmergencyNumber(code))
	}
	for _, prefix := range outsideLinePrefixes {
		if rest, ok := strings.CutPrefix(digits, prefix); ok && isAnyEmergencyNumber(rest) {
			return true
		}
	}
	return digits == emergencyTestNumber
}

func isEmergencyAfterPrefix(code string, digits int) bool {
	return len(code) > digits && isAnyEmergencyNumber(code[digits:])
}

func isAnyEmergencyNumber(digits string) bool {
	return allEmergencyNumbers[digits] || len(digits) == 4 && strings.HasPrefix(digits, "13")
}

// MaybeReserved reports whether the dialled digits may be reserved in any country, as ReservedExtension reports it for one.
// It is cheap.
func MaybeReserved(dialled string) bool {
	return MaybeEmergency(dialled) || shortnumber.IsCrisis(normalizeDialled(dialled))
}
