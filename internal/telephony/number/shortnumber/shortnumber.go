// Package shortnumber lists the short numbers of countries: emergency numbers, and services such as 988, 411 and 116117.
// They are dialled as they are, because they have no form in E.164.
package shortnumber

import (
	"slices"
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// Emergency112 is the emergency number of the European Union and of every GSM phone (3GPP TS 22.101 section 10.1). It is
// an emergency number in every country.
const Emergency112 = "112"

// Service is a short number that is no emergency number.
type Service struct {
	Number string
	Name   string
	Type   string // type of the number for the outbound policy, one of org.NumberTypes
	Crisis bool   // it reaches help for people in danger: it is reserved as emergency numbers are
}

// IsEmergency reports whether digits are an emergency number of a country (ISO 3166): one of our table, or one of the
// phone library.
func IsEmergency(country, digits string) bool {
	return digits == Emergency112 || emergencyNumbers[country][digits] || phonenumbers.IsEmergencyNumber(digits, country)
}

// ServiceOf returns the service that digits reach in a country (ISO 3166).
func ServiceOf(country, digits string) (Service, bool) {
	if s, ok := services[country][digits]; ok {
		return s, true
	}
	if harmonisedCountries[country] && isHarmonised(digits) {
		return Service{Number: digits, Name: "service of social value", Type: free}, true
	}
	return Service{}, false
}

// IsCrisis reports whether digits are a crisis line of any country.
func IsCrisis(digits string) bool { return crisisLines[digits] }

// isHarmonised reports whether digits lie in the range of the harmonised numbers.
func isHarmonised(digits string) bool {
	return len(digits) == 6 && strings.HasPrefix(digits, harmonisedPrefix) && strings.Trim(digits, "0123456789") == ""
}

// Emergency returns the emergency numbers of our table: countries (ISO 3166) by number.
func Emergency() map[string][]string {
	all := map[string][]string{}
	for country, numbers := range emergencyNumbers {
		for n := range numbers {
			all[n] = append(all[n], country)
		}
	}
	for _, countries := range all {
		slices.Sort(countries)
	}
	return all
}

// emergencyRow lists the numbers of one kind in countries with one source. Numbers and countries are separated by spaces.
type emergencyRow struct {
	countries, numbers string
	kind               string
	source             string
}

// serviceRow lists the numbers of one kind in countries with one source.
type serviceRow struct {
	countries, numbers string
	name               string
	kind               string // type of the number for the outbound policy
	source             string
}

var (
	emergencyNumbers = indexEmergency(emergencyRows)
	services         = indexServices(serviceRows)

	crisisLines = indexCrisis(serviceRows)

	harmonisedCountries = countrySet(harmonised)
)

func indexEmergency(rows []emergencyRow) map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for _, r := range rows {
		for _, country := range strings.Fields(r.countries) {
			if all[country] == nil {
				all[country] = map[string]bool{}
			}
			for _, n := range strings.Fields(r.numbers) {
				all[country][n] = true
			}
		}
	}
	return all
}

func countrySet(countries string) map[string]bool {
	all := map[string]bool{}
	for _, country := range strings.Fields(countries) {
		all[country] = true
	}
	return all
}

func indexCrisis(rows []serviceRow) map[string]bool {
	all := map[string]bool{}
	for _, r := range rows {
		if r.name == crisisLine {
			all[r.numbers] = true
		}
	}
	return all
}

func indexServices(rows []serviceRow) map[string]map[string]Service {
	all := map[string]map[string]Service{}
	for _, r := range rows {
		for _, country := range strings.Fields(r.countries) {
			if all[country] == nil {
				all[country] = map[string]Service{}
			}
			for _, n := range strings.Fields(r.numbers) {
				all[country][n] = Service{Number: n, Name: r.name, Type: r.kind, Crisis: r.name == crisisLine}
			}
		}
	}
	return all
}
