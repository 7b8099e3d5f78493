package org

import (
	"strings"

	"github.com/nyaruka/phonenumbers"
	"golang.org/x/text/language"
)

// Country normalises an ISO 3166 country code and reports whether the country exists.
func Country(code string) (string, bool) {
	code = strings.ToUpper(strings.TrimSpace(code))
	return code, phonenumbers.GetSupportedRegions()[code]
}

// timezoneOf returns the time zone of an example number of the country. It is only a default: a country can have
// several zones.
func timezoneOf(country string) string {
	zones, err := phonenumbers.GetTimezonesForNumber(phonenumbers.GetExampleNumber(country))
	if err != nil || len(zones) == 0 || !isValidZone(zones[0]) {
		return "UTC"
	}
	return zones[0]
}

// languageOf returns the most common language of the country.
func languageOf(country string) string {
	region, err := language.ParseRegion(country)
	if err != nil {
		return "en"
	}
	tag, err := language.Compose(language.Und, region)
	if err != nil {
		return "en"
	}
	base, _ := tag.Base()
	return base.String()
}
