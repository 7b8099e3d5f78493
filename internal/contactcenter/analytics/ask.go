package analytics

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"soniq/internal/platform/db"
)

// callQuery selects calls to count.
type ask struct {
	org string
	period
	only  map[string]string // dimension → key
	tags  []string
	group []string // dimensions
}

// callSums holds the counts of a query in total, by step and by group.
type answer struct {
	all    Counts
	steps  []Counts
	groups map[string]*Counts // by group key: the keys joined with a line feed
	hours  [24]int64          // calls by hour of the day
}

// addTotal adds calls to the total, to their step and to their hour of the day.
func (a *answer) total(q ask, at time.Time, c *Counts) {
	a.all.add(c)
	a.steps[q.step(at)].add(c)
	a.hours[at.In(q.zone).Hour()] += c.Total
}

// addGroup adds calls to their group. Calls with an empty key, such as calls without an agent in a grouping by agent,
// are in no group.
func (a *answer) grouped(keys []string, c *Counts) {
	if len(keys) == 0 || slices.Contains(keys, "") {
		return
	}
	key := strings.Join(keys, "\n")
	if a.groups[key] == nil {
		a.groups[key] = &Counts{}
	}
	a.groups[key].add(c)
}

// run executes a query. It reads the stored counts if they suffice, else the call records.
func (s *Service) answer(ctx context.Context, q ask) (*answer, error) {
	a := &answer{steps: make([]Counts, len(q.steps)), groups: map[string]*Counts{}}
	if !q.kept() || !q.whole(s.Now()) {
		return a, s.fromRecords(ctx, q, a)
	}
	if ready, err := s.prepared(ctx, q.org); err != nil || !ready {
		return a, errors.Join(err, s.fromRecords(ctx, q, a))
	}
	if err := s.settle(ctx, q.org); err != nil {
		return nil, err
	}
	if err := s.fromCounts(ctx, q, q.filtered(), func(at time.Time, _ string, c *Counts) { a.total(q, at, c) }); err != nil {
		return nil, err
	}
	for _, d := range q.group {
		err := s.fromCounts(ctx, q, d, func(_ time.Time, key string, c *Counts) { a.grouped([]string{key}, c) })
		if err != nil {
			return nil, err
		}
	}
	return a, nil
}

// usesCounts reports whether the stored counts of one dimension suffice.
func (q ask) kept() bool {
	if len(q.tags) > 0 || len(q.only) > 1 || len(q.group) > 1 {
		return false
	}
	return len(q.only) == 0 || len(q.group) == 0 || q.group[0] == q.filtered()
}

// filterDimension returns the dimension of the query's filter.
func (q ask) filtered() string {
	for d := range q.only {
		return d
	}
	return allCalls
}

// fromCounts reads the stored counts of a dimension.
func (s *Service) fromCounts(ctx context.Context, q ask, dimension string, do func(at time.Time, key string, c *Counts)) error {
	const text = `SELECT at, key, total, inbound, outbound, internal, answered, missed, abandoned, voicemail, queued, in_time,
			ring_seconds, queue_seconds, talk_seconds, hold_seconds, callers
		FROM call_counts WHERE org_id = $1`
	since, until := q.times()
	f := db.Where(text, q.org).Equal("dimension", dimension).Between("at", since, until)
	if key, narrowed := q.only[dimension]; narrowed {
		f.Equal("key", key)
	}
	statement, args := f.SQL()
	rows, err := s.DB.Read(ctx).Query(ctx, statement, args...)
	if err != nil {
		return fmt.Errorf("read counts of calls: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		at, key, c, err := scanCounts(rows)
		if err != nil {
			return fmt.Errorf("read counts of calls: %w", err)
		}
		do(at, key, c)
	}
	return rows.Err()
}

func scanCounts(rows *sql.Rows) (at time.Time, key string, c *Counts, err error) {
	c = &Counts{}
	var began db.Time
	var who []byte
	into := []any{&began, &key}
	for _, n := range c.fields() {
		into = append(into, n)
	}
	err = rows.Scan(append(into, &who)...)
	c.Callers = callersOf(who)
	return began.Time, key, c, err
}

// tagCondition selects calls with a tag.
const withTag = `EXISTS (SELECT 1 FROM call_tags t JOIN tags n ON n.org_id = t.org_id AND n.id = t.tag_id
	WHERE t.org_id = calls.org_id AND t.call_id = calls.id AND n.name = ?)`

var columnOf = map[string]string{ByQueue: "queue_id", ByAgent: "agent_id", ByNumber: "number_id", ByDirection: "direction"}

func (s *Service) fromRecords(ctx context.Context, q ask, a *answer) error {
	const text = `SELECT ` + recordColumns + ` FROM calls WHERE org_id = $1 AND ended_at IS NOT NULL`
	since, until := q.times()
	f := db.Where(text, q.org).Between("started_at", since, until)
	for d, key := range q.only {
		f.Equal(columnOf[d], key)
	}
	for _, t := range q.tags {
		f.And(withTag, t)
	}
	return s.each(ctx, f, func(r record) {
		keys := make([]string, len(q.group))
		for i, d := range q.group {
			keys[i], _ = r.key(d)
		}
		c := s.counts(q.org, r)
		a.total(q, r.at.Time, c)
		a.grouped(keys, c)
	})
}

// sorted returns the group keys, largest group first.
func (a *answer) sorted() []string {
	keys := make([]string, 0, len(a.groups))
	for k := range a.groups {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(x, y string) int {
		if a.groups[x].Total != a.groups[y].Total {
			return int(a.groups[y].Total - a.groups[x].Total)
		}
		return strings.Compare(x, y)
	})
	return keys
}
