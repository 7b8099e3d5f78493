package org_test

import (
	"testing"

	"soniq/internal/identity/org"
)

// Every entry of transcripts.languages has an effect, not only the first.
//
// https://github.com/OpenWhispr/openwhispr/issues/260
func TestCallLanguage_OfTheNumbersCountry(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		number    string
		languages []string
		want      string
	}{
		{"+493012345678", nil, "en"},
		{"+493012345678", []string{"en", "de"}, "de"},
		{"+43123456789", []string{"en", "de", "de-AT"}, "de-AT"},
		{"+442079460000", []string{"en", "de"}, "en"},
		{"+442079460000", []string{"de", "en"}, "de"}, // calls inside the country are in the first language
		{"+33123456789", []string{"en", "de"}, "en"},
		{"+12025550143", []string{"de", "en"}, "en"},
		{"", []string{"de", "en"}, "de"},
		{"anonymous", []string{"de", "en"}, "de"},
		{"600", []string{"de", "en"}, "de"},
	} {
		o := org.Organization{Country: "GB", Language: "en", Settings: org.Defaults("GB")}
		o.Transcripts.Languages = c.languages
		if got := o.CallLanguage(c.number); got != c.want {
			t.Errorf("a call with %q and languages %v is in %s, want %s", c.number, c.languages, got, c.want)
		}
	}
}
