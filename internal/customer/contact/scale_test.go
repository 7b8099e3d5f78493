package contact_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

// fillMillion adds a million contacts with a number each to an organisation.
func (h *fixture) fillMillion(n int) {
	h.t.Helper()
	ctx := context.Background()
	for _, q := range []string{
		`INSERT INTO contacts (org_id, id, first_name, last_name, name, sort_name, company, title, phones, emails, tags, custom, source,
			vip, do_not_call, notes_count, search, created_at, updated_at)
		WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < $2)
		SELECT $1, 'con_' || i, 'Person', CAST(i AS TEXT), 'Person ' || i, 'person ' || i, 'Company', '', '[]', '[]', '[]', '{}', 'import',
		FALSE, FALSE, 0, '', 1, 1 FROM n`,
		`INSERT INTO contact_phones (org_id, number, source, record_id, position, digits, tail, extension, domestic)
		WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < $2)
		SELECT $1, '+4420' || (70000000 + i), '', 'con_' || i, 0, '4420' || (70000000 + i),
		CAST(substr(CAST(70000000 + i AS TEXT), 2) AS TEXT), '', FALSE FROM n`,
	} {
		err := h.d.Tx(ctx, func(tx db.Querier) error {
			_, err := tx.Exec(ctx, q, h.org, n)
			return err
		})
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

// TestLookupOverAMillionNumbers measures GET /contacts/lookup from the router to the answer, for numbers that are not
// cached and for one that is.
func TestLookupOverAMillionNumbers(t *testing.T) {
	if os.Getenv("SONIQ_BENCH") == "" {
		t.Skip("set SONIQ_BENCH=1 to measure")
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const people = 1_000_000
		h := newFixture(t, d)
		h.fillMillion(people)
		dice := rand.New(rand.NewPCG(1, 2))
		for _, c := range []struct {
			name string
			next func(i int) int
		}{{"index", func(int) int { return dice.IntN(people) }}, {"cache", func(int) int { return 4711 }}, {"nobody", func(i int) int { return people + i }}} {
			took := make([]time.Duration, 5000)
			for i := range took {
				phone := fmt.Sprintf("+4420%d", 70000000+c.next(i))
				began := time.Now()
				a := h.lookup(phone)
				took[i] = time.Since(began)
				if want := map[bool]int{true: 404, false: 200}[c.name == "nobody"]; a.Status != want {
					t.Fatalf("%s: %d %s", phone, a.Status, a.Bytes)
				}
			}
			slices.Sort(took)
			t.Logf("%s: p50 %s, p95 %s, p99 %s, max %s", c.name, took[len(took)/2], took[len(took)*95/100], took[len(took)*99/100],
				took[len(took)-1])
			if p99 := took[len(took)*99/100]; p99 > 5*time.Millisecond {
				t.Errorf("%s: p99 is %s, want less than 5 ms", c.name, p99)
			}
		}
	})
}
