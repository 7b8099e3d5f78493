package shortnumber

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nyaruka/phonenumbers"

	"soniq/internal/identity/org"
)

var (
	countryForm = regexp.MustCompile(`^[A-Z]{2}$`)
	numberForm  = regexp.MustCompile(`^[0-9]{2,6}$`)
)

// Each row names known countries, numbers that no outside line begins, and its source.
func TestTables_Rows(t *testing.T) {
	t.Parallel()
	for _, r := range emergencyRows {
		checkRow(t, r.countries, r.numbers, r.kind, r.source)
	}
	for _, r := range serviceRows {
		checkRow(t, r.countries, r.numbers, r.kind, r.source)
		if !slices.Contains(org.NumberTypes, r.kind) || r.name == "" {
			t.Errorf("%s %s is of the type %q, named %q", r.countries, r.numbers, r.kind, r.name)
		}
		for _, country := range strings.Fields(r.countries) {
			for _, n := range strings.Fields(r.numbers) {
				if IsEmergency(country, n) {
					t.Errorf("%s %s is an emergency number", country, n)
				}
			}
		}
	}
	if n := len(emergencyNumbers); n < 60 {
		t.Errorf("the table has %d countries", n)
	}
}

func checkRow(t *testing.T, countries, numbers, kind, source string) {
	t.Helper()
	known := phonenumbers.GetSupportedRegions()
	for _, country := range strings.Fields(countries) {
		if !countryForm.MatchString(country) || !known[country] {
			t.Errorf("%s of %q is no country", country, numbers)
		}
	}
	for _, n := range strings.Fields(numbers) {
		if !numberForm.MatchString(n) {
			t.Errorf("%s of %s is no short number", n, countries)
		}
	}
	if countries == "" || numbers == "" || kind == "" || len(source) < 10 {
		t.Errorf("%s %s: kind %q, source %q", countries, numbers, kind, source)
	}
}

// https://github.com/fusionpbx/fusionpbx/pull/5869
func TestIsEmergency_TableAndLibrary(t *testing.T) {
	t.Parallel()
	for country, numbers := range map[string]string{
		"JP": "110 112 118 119", "FR": "15 17 18 112 114 115 119 191 196 197", "RE": "115 197", "IT": "112 113 115 118 1530 1515", "ES": "061 062 080 091 092 112",
		"PL": "112 985 986 991 997", "AT": "122 133 140 144", "CH": "117 118 144 145 1414", "TW": "110 118 119", "BR": "190 191 193 197 199", "CL": "131 137 138",
		"KR": "112 119 122", "GR": "100 108 199", "NO": "110 112 113 120", "TR": "110 112 155 156 158", "AE": "996 999", "UG": "999", "FJ": "911", "SE": "112 90000",
	} {
		for _, n := range strings.Fields(numbers) {
			if !IsEmergency(country, n) {
				t.Errorf("%s %s is no emergency number", country, n)
			}
		}
	}
	for _, c := range [][2]string{{"US", "118"}, {"DE", "115"}, {"DE", "118"}, {"GB", "101"}, {"GB", "111"}, {"US", "988"}, {"JP", "117"}, {"FR", "116117"}, {"FR", "3919"}} {
		if IsEmergency(c[0], c[1]) {
			t.Errorf("%s %s is an emergency number", c[0], c[1])
		}
	}
}

func TestServiceOf_Countries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ country, digits, kind string }{
		{"US", "988", "toll_free"}, {"CA", "988", "toll_free"}, {"US", "411", "uan"}, {"CA", "811", "toll_free"}, {"DE", "116117", "toll_free"},
		{"DE", "116116", "toll_free"}, {"FR", "116000", "toll_free"}, {"PL", "116123", "toll_free"}, {"GB", "101", "toll_free"}, {"GB", "111", "toll_free"},
		{"DE", "115", "uan"}, {"NZ", "105", "toll_free"}, {"US", "116117", ""}, {"DE", "988", ""}, {"US", "911", ""}, {"DE", "11833", ""}, {"DE", "11611", ""},
		{"DE", "1161170", ""}, {"DE", "", ""}, {"", "988", ""}, {"MX", "411", ""}, {"DE", "11611a", ""},
	} {
		if s, ok := ServiceOf(c.country, c.digits); s.Type != c.kind || ok != (c.kind != "") {
			t.Errorf("%s %q is %+v", c.country, c.digits, s)
		}
	}
	if s, _ := ServiceOf("US", "988"); !s.Crisis || !IsCrisis("988") || IsCrisis("411") {
		t.Error("988 is no crisis line, or 411 is one")
	}
}
