package job

import (
	"context"
	"strings"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

// planRecorder records the query plans of statements.
type planRecorder struct {
	db.Querier
	t     *testing.T
	plans []string
}

func (s *planRecorder) explain(q string, args []any) {
	s.t.Helper()
	rows, err := s.Querier.Query(context.Background(), "EXPLAIN QUERY PLAN "+q, args...)
	if err != nil {
		s.t.Fatalf("%v in %s", err, q)
	}
	defer rows.Close()
	for rows.Next() {
		var a, b, c int
		var step string
		if err := rows.Scan(&a, &b, &c, &step); err != nil {
			s.t.Fatal(err)
		}
		s.plans = append(s.plans, step)
	}
}

// No statement scans the table, which contains finished jobs of several days.
func TestStatements_UseIndexes(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	ctx := context.Background()
	now := db.At(time.Now())
	for name, q := range map[string]struct {
		text string
		args []any
	}{
		"due":   {`SELECT id, org_id, lane FROM jobs j WHERE queue = $1 AND state = 0 AND run_at <= $2 AND ` + openEarlier + ` ORDER BY run_at, id LIMIT 65`, []any{"q", now}},
		"orgs":  {orgsWaiting, []any{"q"}},
		"lanes": {lanesWaiting, []any{"o", "q", now}},
		"lane": {`SELECT id FROM jobs j WHERE org_id = $1 AND queue = $2 AND lane = $3 AND lane <> '' AND state = 0 AND run_at <= $4 AND ` + openEarlier + ` ORDER BY run_at, id LIMIT 5`,
			[]any{"o", "q", "l", now}},
		"claim":      {`UPDATE jobs SET state = 1 WHERE ` + stillReady + ` AND id IN ($1, $2)`, []any{"a", "b"}},
		"next":       {`SELECT min(run_at) FROM jobs WHERE queue = $1 AND state = 0 AND run_at > $2`, []any{"q", now}},
		"hurry":      {`UPDATE jobs SET run_at = $3 WHERE org_id = $1 AND unique_key = $2 AND state = 0 AND state < 2`, []any{"o", "u", now}},
		"hurry lane": {`UPDATE jobs SET run_at = $4 WHERE org_id = $1 AND queue = $2 AND lane = $3 AND lane <> '' AND state = 0 AND run_at > $4`, []any{"o", "q", "l", now}},
		"close":      {`UPDATE jobs SET state = 2 FROM (VALUES ` + db.Values(1, 3, "", "INTEGER") + `) AS v WHERE jobs.id = v.column1 AND jobs.attempt = v.column2`, []any{"a", 1, "b", 1, "c", 1}},
		"end":        {`UPDATE jobs SET state = 3` + held, []any{"o", "a", "w", 1}},
		"expire":     {`UPDATE jobs SET state = 0 WHERE state = 1 AND lease_until < $1`, []any{now}},
		"ahead":      {firstJobsOf(2), []any{"p", "q"}},
		"sweep":      {`DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE state >= 2 AND finished_at < $1 LIMIT 500)`, []any{now}},
	} {
		s := &planRecorder{Querier: d.Read(ctx), t: t}
		s.explain(q.text, q.args)
		for _, p := range s.plans {
			if strings.HasPrefix(p, "SCAN jobs") || strings.HasPrefix(p, "SCAN p") || strings.HasPrefix(p, "SCAN j") || strings.Contains(p, "TEMP B-TREE") {
				t.Errorf("%s: %s", name, strings.Join(s.plans, " / "))
				break
			}
		}
		if (name == "due" || name == "next") && !strings.Contains(s.plans[0], "COVERING") {
			t.Errorf("%s reads rows: %s", name, strings.Join(s.plans, " / "))
		}
	}
}
