package org

import (
	"strings"

	"github.com/nyaruka/phonenumbers"
	"golang.org/x/text/language"
)

// Country normalises a country code of ISO 3166 and reports whether there is such a country.
func Country(code string) (string, bool) {
	code = strings.ToUpper(strings.TrimSpace(code))
	return code, phonenumbers.GetSupportedRegions()[code]
}

// timezoneOf is the time zone of a typical number of the country: a start, to be corrected where a country has several.
func timezoneOf(country string) string {
	zones, err := phonenumbers.GetTimezonesForNumber(phonenumbers.GetExampleNumber(country))
	if err != nil || len(zones) == 0 || !knownZone(zones[0]) {
		return "UTC"
	}
	return zones[0]
}

// languageOf is the language most spoken in the country.
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
