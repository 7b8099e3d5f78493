package notice

import (
	"slices"
	"testing"
)

func TestTexts_OwnThenStandardThenEnglish(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		own, language string
		want          []Spoken
	}{
		{"", "en-GB", []Spoken{{english, ""}}},
		{"", "de-CH", []Spoken{{standard["de"], "de-CH"}, {english, ""}}},
		{"Grüezi", "de", []Spoken{{"Grüezi", "de"}, {standard["de"], "de"}, {english, ""}}},
		{"Hi", "en", []Spoken{{"Hi", ""}, {english, ""}}},
		{"", "xx", []Spoken{{english, ""}}},
	} {
		if got := Texts(c.own, c.language); !slices.Equal(got, c.want) {
			t.Errorf("%q in %s: %q", c.own, c.language, got)
		}
	}
}
