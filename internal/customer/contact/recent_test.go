package contact

import (
	"strconv"
	"testing"
)

func TestRecentNumbersAreBoundedAndTheirOwn(t *testing.T) {
	t.Parallel()
	var r recent
	asked := 0
	read := func(text, country string) (number, bool) {
		asked++
		return number{e164: text + country}, country != "XX"
	}
	for range 3 {
		if n, ok := r.get("1", "US", read); !ok || n.e164 != "1US" {
			t.Fatal(n, ok)
		}
		if n, ok := r.get("1", "XX", read); ok || n.e164 != "1XX" {
			t.Fatal(n, ok)
		}
	}
	if asked != 2 {
		t.Errorf("read %d times, want once in each country", asked)
	}
	for i := range 2 * maxRecent {
		r.get(strconv.Itoa(i), "US", read)
		if len(r.all) > maxRecent {
			t.Fatalf("%d are remembered", len(r.all))
		}
	}
}
