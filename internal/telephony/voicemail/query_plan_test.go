package voicemail

import (
	"context"
	"strings"
	"testing"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/visibility"
)

// Queries by number use the index in its order: they neither sort nor read messages of other numbers.
func TestQueryPlan_ByNumberUsesIndex(t *testing.T) {
	t.Parallel()
	d, ctx := dbtest.SQLite(t), context.Background()
	list, err := (&ListIn{}).query(visibility.View{}, "org_a", "+12025550100")
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]*db.Filter{"history": History{Numbers: []string{"+12025550100"}}.query("org_a"), "list": list} {
		q, args := f.SQL()
		rows, err := d.Read(ctx).Query(ctx, "EXPLAIN QUERY PLAN "+q+" ORDER BY v.received_at DESC, v.id DESC LIMIT 20", args...)
		if err != nil {
			t.Fatal(err)
		}
		var plan []string
		for rows.Next() {
			var a, b, c int
			var step string
			if err := rows.Scan(&a, &b, &c, &step); err != nil {
				t.Fatal(err)
			}
			plan = append(plan, step)
		}
		rows.Close()
		if all := strings.Join(plan, "; "); !strings.Contains(all, "voicemails_from (org_id=? AND from_number=?)") || strings.Contains(all, "TEMP B-TREE") {
			t.Errorf("%s: %s", name, all)
		}
	}
}
