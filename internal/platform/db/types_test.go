package db_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

func TestColumnTypes_RoundTrip(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		must(t, d.Tx(ctx, func(tx db.Querier) error {
			_, err := tx.Exec(ctx, `CREATE TABLE kinds (id INTEGER PRIMARY KEY, at BIGINT, list TEXT, ref TEXT, flag BOOLEAN, raw BLOB)`)
			return err
		}))
		zone := time.FixedZone("far", 5*3600+1800)
		rows := []struct {
			at   db.Time
			list []string
			ref  db.Null
			flag bool
			raw  []byte
		}{
			{db.At(time.Date(2026, 2, 3, 4, 5, 6, 789_012_345, zone)), []string{"a", "ü\u2028\"", "123"}, "x", true, []byte{0, 255, '\''}},
			{db.Time{}, nil, "", false, nil},
		}
		for i, r := range rows {
			must(t, d.Tx(ctx, func(tx db.Querier) error {
				_, err := tx.Exec(ctx, `INSERT INTO kinds (id, at, list, ref, flag, raw) VALUES ($1, $2, $3, $4, $5, $6)`,
					i, r.at, db.AsJSON(r.list), r.ref, r.flag, r.raw)
				return err
			}))
			var at db.Time
			var list db.JSON[[]string]
			var ref db.Null
			var flag bool
			var raw []byte
			must(t, d.Read(ctx).QueryRow(ctx, `SELECT at, list, ref, flag, raw FROM kinds WHERE id = $1`, i).Scan(&at, &list, &ref, &flag,
				&raw))
			if !at.Equal(r.at.Time) || at.Location() != time.UTC || !slices.Equal(list.V, r.list) || ref != r.ref || flag != r.flag ||
				!slices.Equal(raw, r.raw) {
				t.Errorf("row %d came back as %v %q %q %v %v", i, at, list.V, ref, flag, raw)
			}
		}
		var nulls int
		must(t, d.Read(ctx).QueryRow(ctx, `SELECT count(*) FROM kinds WHERE at IS NULL AND ref IS NULL`).Scan(&nulls))
		if nulls != 1 {
			t.Errorf("%d rows with NULL, want 1: zero time and empty reference are NULL", nulls)
		}
	})
}

func TestTime_JSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"2026-01-31T10:30:00.123456+01:00"`: `"2026-01-31T09:30:00.123Z"`,
		`"2026-01-31T09:30:00Z"`:             `"2026-01-31T09:30:00.000Z"`,
		`null`:                               `null`,
	} {
		var at db.Time
		must(t, json.Unmarshal([]byte(text), &at))
		if b, err := json.Marshal(at); err != nil || string(b) != want {
			t.Errorf("%s became %s (%v), want %s", text, b, err, want)
		}
	}
	if err := json.Unmarshal([]byte(`"31.01.2026"`), new(db.Time)); err == nil {
		t.Error("a date in another form is accepted")
	}
}

func TestNewID_UniqueAndSorted(t *testing.T) {
	t.Parallel()
	const many = 10_000
	ids := make([]string, many)
	for i := range ids {
		ids[i] = db.NewID("call")
	}
	if !slices.IsSorted(ids) || len(slices.Compact(ids)) != many {
		t.Error("not sorted, or not unique")
	}
	if first := db.FirstID("call", time.Now().Add(-time.Minute)); first >= ids[0] || len(first) != len(ids[0]) {
		t.Errorf("FirstID %s of a minute ago does not sort before %s", first, ids[0])
	}
	if first := db.FirstID("call", time.Now().Add(time.Minute)); first <= ids[many-1] {
		t.Errorf("FirstID %s of the next minute does not sort after %s", first, ids[many-1])
	}
	if id := ids[0]; len(id) != len("call_")+26 || strings.ContainsAny(id[5:], "ILOU") {
		t.Errorf("id %s has not the form of the contract", id)
	}
}

func TestErrors_Classified(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		table(t, d)
		must(t, d.Tx(ctx, func(tx db.Querier) error {
			_, err := tx.Exec(ctx, `CREATE TABLE parts (of_thing TEXT NOT NULL REFERENCES things (id))`)
			return err
		}))
		exec := func(q string, args ...any) error {
			return d.Tx(ctx, func(tx db.Querier) error { _, err := tx.Exec(ctx, q, args...); return err })
		}
		must(t, exec(`INSERT INTO things (id, n) VALUES ($1, 1)`, "a"))
		must(t, exec(`INSERT INTO parts (of_thing) VALUES ($1)`, "a"))
		if err := exec(`INSERT INTO things (id, n) VALUES ($1, 1)`, "a"); !db.IsConflict(err) || db.IsForeignKey(err) {
			t.Errorf("duplicate: %v", err)
		}
		if err := exec(`INSERT INTO parts (of_thing) VALUES ($1)`, "b"); !db.IsForeignKey(err) || db.IsConflict(err) {
			t.Errorf("reference to nothing: %v", err)
		}
		if err := exec(`DELETE FROM things WHERE id = $1`, "a"); !db.IsForeignKey(err) {
			t.Errorf("still referred to: %v", err)
		}
		var n int
		if err := d.Read(ctx).QueryRow(ctx, `SELECT n FROM things WHERE id = $1`, "z").Scan(&n); !db.IsNone(err) {
			t.Errorf("nothing found: %v", err)
		}
	})
}

func TestPage_StableWhileListGrows(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		table(t, d)
		must(t, d.Tx(ctx, func(tx db.Querier) error {
			for i := range 25 { // five rows share each n
				if err := put(tx, fmt.Sprintf("%02d", i), i/5); err != nil {
					return err
				}
			}
			return nil
		}))
		for _, descending := range []bool{false, true} {
			var seen []string
			n, id := 0, ""
			for page := 0; ; page++ {
				f := db.Where(`SELECT id, n FROM things WHERE n < $1`, 100).In("n", []string{"0", "1", "2", "3", "4"}).Page("n", descending, n, id, 4)
				q, args := f.SQL()
				rows, err := d.Read(ctx).Query(ctx, q, args...)
				must(t, err)
				got := 0
				for got = 0; rows.Next(); got++ {
					if got == 4 {
						continue // the extra row that shows that there are more
					}
					must(t, rows.Scan(&id, &n))
					seen = append(seen, id)
				}
				rows.Close()
				if got <= 4 {
					break
				}
				must(t, d.Tx(ctx, func(tx db.Querier) error { // outside the remaining pages, in both directions
					return put(tx, fmt.Sprintf("new%v%d", descending, page), 99)
				}))
			}
			slices.Sort(seen)
			if len(seen) != 25 || len(slices.Compact(seen)) != 25 {
				t.Errorf("descending %v: %d rows seen, want 25 once each", descending, len(seen))
			}
		}
	})
}

func TestFilter_ValuesAsArguments(t *testing.T) {
	t.Parallel()
	evil := `x' OR '1'='1`
	q, args := db.Where(`SELECT id FROM things WHERE org_id = $1`, "o").Equal("a", evil).Equal("b", "").In("c", []string{evil, "y"}).
		In("d", nil).And("e LIKE ? OR f = ?", evil, 1).Between("at", db.Time{}, db.At(time.Unix(1, 0))).SQL()
	want := `SELECT id FROM things WHERE org_id = $1 AND (a = $2) AND c IN ($3, $4) AND (e LIKE $5 OR f = $6) AND (at < $7)`
	if q != want || len(args) != 7 {
		t.Errorf("got  %s\nwant %s, %d arguments", q, want, len(args))
	}
	if got := db.Escape(`50%_\`); got != `50\%\_\\` {
		t.Errorf("Escape: %s", got)
	}
}

func TestBulk_FewSizes(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 31, 32, 33, 100} {
		next, sizes := 0, map[int]bool{}
		must(t, db.Bulk(n, func(from, to int) error {
			if from != next || to <= from {
				t.Errorf("n %d: from %d, want %d", n, from, next)
			}
			next, sizes[to-from] = to, true
			return nil
		}))
		if next != n || len(sizes) > 6 {
			t.Errorf("n %d: %d done, in %d sizes", n, next, len(sizes))
		}
	}
	if got := db.Values(3, 2, "", "BIGINT"); got != "($3, CAST($4 AS BIGINT)), ($5, CAST($6 AS BIGINT))" {
		t.Errorf("Values: %s", got)
	}
}
