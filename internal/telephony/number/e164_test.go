package number

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseCache_PerCountryAndBounded(t *testing.T) {
	t.Parallel()
	r := parseCache{results: map[parseKey]parseResult{}}
	for range 2 { // first parsed, then read from the cache
		for s, want := range map[parseKey]parseResult{
			{"020 7946 0018", "GB"}:   {"+442079460018", true},
			{"030 123456", "DE"}:      {"+4930123456", true},
			{"(202) 555-0123", "US"}:  {"+12025550123", true},
			{"020 7946 0018", "DE"}:   {"+492079460018", true},
			{"nobody", "US"}:          {"", false},
			{"+12025550123 x5", "US"}: {"", false},
		} {
			if e164, ok := r.parse(s); e164 != want.e164 || ok != want.ok {
				t.Errorf("%v is %q %v, want %q %v", s, e164, ok, want.e164, want.ok)
			}
		}
	}
	if len(r.results) != 6 {
		t.Errorf("%d are kept", len(r.results))
	}
	if r.parse(parseKey{strings.Repeat("1", maxCachedLength+1), "US"}); len(r.results) != 6 {
		t.Error("a spelling without end is kept")
	}
	for i := range maxCachedNumbers {
		r.results[parseKey{fmt.Sprint(i), "XX"}] = parseResult{}
	}
	if r.parse(parseKey{"020 7946 0019", "GB"}); len(r.results) != 1 {
		t.Errorf("%d are kept of too many", len(r.results))
	}
}
