package sms

import (
	"context"
	"strings"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

// queryPlan returns the plan of SQLite for a statement.
func queryPlan(t *testing.T, d *db.DB, q string, args []any) string {
	t.Helper()
	rows, err := d.Read(context.Background()).Query(context.Background(), "EXPLAIN QUERY PLAN "+q, args...)
	if err != nil {
		t.Fatalf("%v in %s", err, q)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var a, b, c int
		var step string
		if err := rows.Scan(&a, &b, &c, &step); err != nil {
			t.Fatal(err)
		}
		all = append(all, step)
	}
	return strings.Join(all, "; ")
}

// Messages of a number are found by index and read in index order: no sort, and no rows of other numbers.
func TestMessages_QueryPlansUseIndexes(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	one, day := []string{"+12025550100"}, db.At(time.Unix(1_800_000_000, 0))
	list := func(in ListIn) *db.Filter {
		f, err := in.filter("org_a", one)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for name, want := range map[string]struct {
		f     *db.Filter
		index string
	}{
		"heard":     {History{Numbers: one}.directionFilter("org_a", inbound, "from_number"), "messages_from (org_id=? AND from_number=?)"},
		"sent":      {History{Numbers: one}.directionFilter("org_a", outbound, "to_number"), "messages_to (org_id=? AND to_number=?)"},
		"of a time": {History{Numbers: one, Since: day}.directionFilter("org_a", inbound, "from_number"), "messages_from (org_id=? AND from_number=? AND created_at>?"},
		"from":      {list(ListIn{FromNumber: one[0]}), "messages_from (org_id=? AND from_number=?)"},
		"to":        {list(ListIn{ToNumber: one[0]}), "messages_to (org_id=? AND to_number=?)"},
	} {
		q, args := want.f.Page("created_at", true, db.Time{}, "", 20).SQL()
		if plan := queryPlan(t, d, q, args); !strings.Contains(plan, want.index) || strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("%s: %s", name, plan)
		}
	}
}
