package number

import (
	"fmt"
	"strings"
	"testing"
)

func TestReadingsAreThoseOfTheirCountryAndBounded(t *testing.T) {
	t.Parallel()
	r := readings{all: map[spelling]reading{}}
	for range 2 { // first parsed, then read from the cache
		for s, want := range map[spelling]reading{
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
	if len(r.all) != 6 {
		t.Errorf("%d are kept", len(r.all))
	}
	if r.parse(spelling{strings.Repeat("1", maxSpelling+1), "US"}); len(r.all) != 6 {
		t.Error("a spelling without end is kept")
	}
	for i := range maxReadings {
		r.all[spelling{fmt.Sprint(i), "XX"}] = reading{}
	}
	if r.parse(spelling{"020 7946 0019", "GB"}); len(r.all) != 1 {
		t.Errorf("%d are kept of too many", len(r.all))
	}
}
