package org

import (
	"slices"

	"github.com/nyaruka/phonenumbers"
	"golang.org/x/text/language"
)

// CallLanguage returns the language of a call with an outside number (E.164, or "" if there is none). A number of
// another country selects the first of the transcripts' languages that is spoken there. Otherwise the first language
// counts, or the organisation's own if none is set.
func (o Organization) CallLanguage(number string) string {
	all := o.Transcripts.Languages
	if len(all) == 0 {
		return o.Language
	}
	country := countryOf(number)
	if country == "" || country == o.Country {
		return all[0]
	}
	for _, matches := range []func(tag, country string) bool{hasRegion, isSpoken} {
		if i := slices.IndexFunc(all, func(tag string) bool { return matches(tag, country) }); i >= 0 {
			return all[i]
		}
	}
	return all[0]
}

// hasRegion reports whether a language tag names a country, as de-AT names Austria.
func hasRegion(tag, country string) bool {
	t, err := language.Parse(tag)
	if err != nil {
		return false
	}
	region, confidence := t.Region()
	return confidence == language.Exact && region.String() == country
}

// isSpoken reports whether a language is the most common one of a country.
func isSpoken(tag, country string) bool {
	t, err := language.Parse(tag)
	if err != nil {
		return false
	}
	base, _ := t.Base()
	return base.String() == languageOf(country)
}

// countryOf returns the country of a number in E.164, or "" if it is not known.
func countryOf(number string) string {
	n, err := phonenumbers.Parse(number, "")
	if err != nil {
		return ""
	}
	if country := phonenumbers.GetRegionCodeForNumber(n); country != "" && country != "ZZ" {
		return country
	}
	return phonenumbers.GetRegionCodeForCountryCode(int(n.GetCountryCode()))
}
