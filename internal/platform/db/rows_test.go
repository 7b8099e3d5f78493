package db_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

func TestStrings_InOrderAndErrors(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx, q := context.Background(), d.Read(context.Background())
		const text = `SELECT v.a FROM (SELECT 'one' AS a, 1 AS b UNION ALL SELECT 'two', 2 UNION ALL SELECT 'three', 3) v WHERE v.b >= $1 ORDER BY v.b`
		if all, err := db.Strings(ctx, q, "count", text, 2); err != nil || !slices.Equal(all, []string{"two", "three"}) {
			t.Errorf("%v, %v", all, err)
		}
		if all, err := db.Strings(ctx, q, "count", text, 4); err != nil || all != nil {
			t.Errorf("nothing found: %v, %v", all, err)
		}
		if _, err := db.Strings(ctx, q, "count", `SELECT nothing FROM nowhere`); err == nil || !strings.HasPrefix(err.Error(), "count: ") {
			t.Errorf("a wrong query: %v", err)
		}
		full, calls := errors.New("full"), 0
		err := db.ForEach(ctx, q, "count", text, []any{1}, func(func(...any) error) error { calls++; return full })
		if !errors.Is(err, full) || calls != 1 {
			t.Errorf("after the first error: %v, %d calls", err, calls)
		}
	})
}
