package number

import (
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// Parse reads a number as people write it, in E.164 or as it is dialled inside the country, and returns it in E.164.
// It accepts numbers of a possible length whose range is not known, for ranges are opened faster than lists of them
// are updated.
func Parse(text, country string) (e164 string, ok bool) {
	n, err := phonenumbers.Parse(text, country)
	if err != nil || n.GetExtension() != "" || !phonenumbers.IsPossibleNumber(n) {
		return "", false
	}
	return phonenumbers.Format(n, phonenumbers.E164), true
}

// facts are what can be told from a number alone.
type facts struct {
	Country  string
	Locality *string
	Type     string
}

func factsOf(e164, fallback string) facts {
	n, err := phonenumbers.Parse(e164, "")
	if err != nil {
		return facts{Country: fallback, Type: "local"}
	}
	f := facts{Country: phonenumbers.GetRegionCodeForNumber(n), Type: typeOf(n)}
	if f.Country == "" || f.Country == "ZZ" {
		f.Country = phonenumbers.GetRegionCodeForCountryCode(int(n.GetCountryCode()))
	}
	if f.Type != "local" {
		return f
	}
	if place, err := phonenumbers.GetGeocodingForNumber(n, "en"); err == nil && strings.TrimSpace(place) != "" {
		f.Locality = &place
	}
	return f
}

func typeOf(n *phonenumbers.PhoneNumber) string {
	switch phonenumbers.GetNumberType(n) {
	case phonenumbers.MOBILE:
		return "mobile"
	case phonenumbers.TOLL_FREE:
		return "toll_free"
	case phonenumbers.UAN, phonenumbers.SHARED_COST, phonenumbers.VOIP, phonenumbers.PERSONAL_NUMBER:
		return "national"
	}
	return "local"
}
