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
	"soniq/internal/platform/visibility"
)

// callQuery selects calls to count.
type callQuery struct {
	org string
	period
	filters map[string]string // dimension → key
	tags    []string
	group   []string // dimensions
	view    visibility.View
}

// callSums holds the counts of a query in total, by step and by group.
type callSums struct {
	all    Counts
	steps  []Counts
	groups map[string]*Counts // by group key: the keys joined with a line feed
	hours  [24]int64          // calls by hour of the day
}

// addTotal adds calls to the total, to their step and to their hour of the day.
func (a *callSums) addTotal(q callQuery, at time.Time, c *Counts) {
	a.all.add(c)
	a.steps[q.stepIndex(at)].add(c)
	a.hours[at.In(q.zone).Hour()] += c.Total
}

// addGroup adds calls to their group. Calls with an empty key, such as calls without an agent in a grouping by agent,
// are in no group.
func (a *callSums) addGroup(keys []string, c *Counts) {
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
func (s *Service) run(ctx context.Context, q callQuery) (*callSums, error) {
	a := &callSums{steps: make([]Counts, len(q.steps)), groups: map[string]*Counts{}}
	if !q.usesCounts() || !q.onQuarters(s.cfg.Clock.Now()) {
		return a, s.fromRecords(ctx, q, a)
	}
	if ready, err := s.prepared(ctx, q.org); err != nil || !ready {
		return a, errors.Join(err, s.fromRecords(ctx, q, a))
	}
	if err := s.rollUp(ctx, q.org); err != nil {
		return nil, err
	}
	if err := s.fromCounts(ctx, q, q.filterDimension(), func(at time.Time, _ string, c *Counts) { a.addTotal(q, at, c) }); err != nil {
		return nil, err
	}
	for _, d := range q.group {
		err := s.fromCounts(ctx, q, d, func(_ time.Time, key string, c *Counts) { a.addGroup([]string{key}, c) })
		if err != nil {
			return nil, err
		}
	}
	return a, nil
}

// usesCounts reports whether the stored counts of one dimension suffice.
func (q callQuery) usesCounts() bool {
	if !q.view.Everything() || len(q.tags) > 0 || len(q.filters) > 1 || len(q.group) > 1 {
		return false
	}
	return len(q.filters) == 0 || len(q.group) == 0 || q.group[0] == q.filterDimension()
}

// filterDimension returns the dimension of the query's filter.
func (q callQuery) filterDimension() string {
	for d := range q.filters {
		return d
	}
	return allCalls
}

// fromCounts reads the stored counts of a dimension.
func (s *Service) fromCounts(ctx context.Context, q callQuery, dimension string, do func(at time.Time, key string, c *Counts)) error {
	const text = `SELECT at, key, total, inbound, outbound, internal, answered, missed, abandoned, voicemail, queued, in_time,
			ring_seconds, queue_seconds, talk_seconds, hold_seconds, callers
		FROM call_counts WHERE org_id = $1`
	since, until := q.times()
	f := db.Where(text, q.org).Equal("dimension", dimension).Between("at", since, until)
	if key, narrowed := q.filters[dimension]; narrowed {
		f.Equal("key", key)
	}
	statement, args := f.SQL()
	rows, err := s.cfg.DB.Read(ctx).Query(ctx, statement, args...)
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
	c.Callers = decodeCallers(who)
	return began.Time, key, c, err
}

// tagCondition selects calls with a tag.
const tagCondition = `EXISTS (SELECT 1 FROM call_tags t JOIN tags n ON n.org_id = t.org_id AND n.id = t.tag_id
	WHERE t.org_id = calls.org_id AND t.call_id = calls.id AND n.name = ?)`

// agentCondition selects calls that a user served.
const agentCondition = `EXISTS (SELECT 1 FROM legs p WHERE p.org_id = calls.org_id AND p.call_id = calls.id AND p.user_id = ?
	AND p.talk_seconds IS NOT NULL)`

var columnOf = map[string]string{ByQueue: "queue_id", ByNumber: "number_id", ByDirection: "direction"}

func (s *Service) fromRecords(ctx context.Context, q callQuery, a *callSums) error {
	return s.eachRecord(ctx, q.org, q.filterCalls, func(r record) {
		for _, chosen := range q.chosen(r) {
			a.addTotal(q, r.at.Time, s.countsOf(q.org, chosen))
			for _, part := range chosen.parts(q.group...) {
				keys := make([]string, len(q.group))
				for i, d := range q.group {
					keys[i], _ = part.key(d)
				}
				a.addGroup(keys, s.countsOf(q.org, part))
			}
		}
	})
}

// chosen returns the part of a call that the filters choose: with a filter for an agent, the agent's.
func (q callQuery) chosen(r record) []record {
	agent, only := q.filters[ByAgent]
	if !only {
		return []record{r}
	}
	return slices.DeleteFunc(r.parts(ByAgent), func(p record) bool { return p.agent != agent })
}

// sorted returns the group keys, largest group first.
func (a *callSums) sorted() []string {
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
