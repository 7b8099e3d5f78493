package contact_test

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

// Misspelt names find contacts, behind those that have the text, and only of the same organisation and within the other filters.
//
// https://github.com/DenverCoder1/jct-discord-bot/issues/153
func TestList_SimilarNames(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, other := newFixture(t, d), newFixture(t, d)
		other.do("POST", "/contacts", `{"first_name":"Elsewhere","last_name":"Meier"}`).Want(201)
		for i, name := range [][2]string{{"Anna", "Meier"}, {"Bert", "Mayer"}, {"Carl", "Maier"}, {"Dora", "Müller"}, {"Emil", "Smyth"},
			{"Fritz", "Mohr"}} {
			h.do("POST", "/contacts", fmt.Sprintf(`{"first_name":%q,"last_name":%q,"tags":["n%d"]}`, name[0], name[1], i%2)).Want(201)
		}
		for query, want := range map[string]string{
			"q=Meier": "Anna Carl Bert", "q=Meyer": "Anna Bert Carl", "q=Mueller": "Dora", "q=Muler": "Dora", "q=smith": "Emil", "q=Smiht": "Emil",
			"q=Anna+Mayer": "Anna", "q=meier+anna": "Anna", "q=Schulz": "", "q=4711": "", "q=Meier&tag=n1": "Bert", "q=%25": "",
		} {
			if got := h.namesOf("/contacts?limit=20", query); got != want {
				t.Errorf("%s lists %q, want %q", query, got, want)
			}
		}
		if got := h.namesOf("/contacts?limit=2", "q=Meier"); got != "Anna Carl" {
			t.Errorf("a page of two lists %q", got)
		}
		if a := h.do("GET", "/contacts?q=Smith&include_total=true", nil).Want(200); fmt.Sprint(a.At("total")) != "0" {
			t.Errorf("total %v, want only those that have the text", a.At("total"))
		}
	})
}

// TestSimilarOverManyContacts measures a search without exact matches, from the router to the answer.
func TestSimilarOverManyContacts(t *testing.T) {
	if os.Getenv("SONIQ_BENCH") == "" {
		t.Skip("set SONIQ_BENCH=1 to measure")
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, people := range []int{20_000, 100_000} {
			h := newFixture(t, d)
			h.fillMillion(people)
			took := make([]time.Duration, 50)
			for i := range took {
				began := time.Now()
				h.do("GET", "/contacts?q="+url.QueryEscape("Persson Kompany"), nil).Want(200)
				took[i] = time.Since(began)
			}
			slices.Sort(took)
			t.Logf("%d contacts: p50 %s, p95 %s", people, took[len(took)/2], took[len(took)*95/100])
		}
	})
}
