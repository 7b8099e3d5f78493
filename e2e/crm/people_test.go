package crm

import (
	"encoding/json"
	"fmt"
	"testing"

	"soniq/e2e/rig"
)

func decode(t testing.TB, b []byte, to any) {
	t.Helper()
	if err := json.Unmarshal(b, to); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
}

// ways lists formats of one London number, by its last eight digits.
var ways = []func(a, b string) string{
	func(a, b string) string { return "+4420" + a + b },
	func(a, b string) string { return "020 " + a + " " + b },
	func(a, b string) string { return "004420" + a + b },
	func(a, b string) string { return "(020) " + a + "-" + b },
	func(a, b string) string { return "020." + a + "." + b + " ext. 12" },
}

// crowd returns n people of one exchange, with their numbers in five formats. The nth has the number e164(exchange,
// n).
func crowd(exchange, prefix string, n int) []rig.Person {
	all := make([]rig.Person, n)
	for i := range all {
		last := fmt.Sprintf("%04d", i)
		all[i] = rig.Person{ID: fmt.Sprintf("%s%d", prefix, i), Name: fmt.Sprintf("%s %d", prefix, i), Company: "Company " + last,
			Email: fmt.Sprintf("%s%d@example.com", prefix, i), Phones: []string{ways[i%len(ways)](exchange, last)}}
	}
	return all
}

func e164(exchange string, n int) string { return fmt.Sprintf("+4420%s%04d", exchange, n) }

// finds checks that each person of a crowd is found by number, and returns the time of the slowest lookup in ms.
func (c company) finds(exchange, source string, people []rig.Person, step int) (slowest int) {
	c.T.Helper()
	for i := 0; i < len(people); i += step {
		w := c.ask("phone", e164(exchange, i))
		if w.Status != 200 || w.Name != people[i].Name || w.Source != source || w.Company != people[i].Company {
			c.T.Fatalf("%s, written %s: %+v", e164(exchange, i), people[i].Phones, w)
		}
		slowest = max(slowest, w.Lookup_ms)
	}
	return slowest
}
