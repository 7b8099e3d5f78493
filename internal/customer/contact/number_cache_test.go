package contact

import (
	"strconv"
	"testing"
)

func TestNumberCache_Bounded(t *testing.T) {
	t.Parallel()
	var r numberCache
	asked := 0
	read := func(text, country string) (phoneNumber, bool) {
		asked++
		return phoneNumber{e164: text + country}, country != "XX"
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
	for i := range 2 * maxCachedNumbers {
		r.get(strconv.Itoa(i), "US", read)
		if len(r.entries) > maxCachedNumbers {
			t.Fatalf("%d are remembered", len(r.entries))
		}
	}
}
