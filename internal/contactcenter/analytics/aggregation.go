package analytics

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"soniq/internal/platform/db"
)

// aggregation sums figures in total, by step and by group.
type aggregation[T any] struct {
	all    T
	steps  []T
	groups map[string]*T
	names  []string // names of the fields by which groups are formed
}

func newAggregation[T any](q callQuery, names []string) *aggregation[T] {
	return &aggregation[T]{steps: make([]T, len(q.steps)), groups: map[string]*T{}, names: names}
}

// at returns the sums to which a value at a time is added: the total, its step, and its group. There is no group if a
// field of it is empty.
func (s *aggregation[T]) at(q callQuery, at time.Time, member func(name string) string) []*T {
	into := []*T{&s.all, &s.steps[q.stepIndex(at)]}
	if len(s.names) == 0 {
		return into
	}
	keys := make([]string, len(s.names))
	for i, name := range s.names {
		if keys[i] = member(name); keys[i] == "" {
			return into
		}
	}
	key := strings.Join(keys, "\n")
	if s.groups[key] == nil {
		s.groups[key] = new(T)
	}
	return append(into, s.groups[key])
}

// sorted returns the group keys, largest group first.
func (s *aggregation[T]) sorted(size func(*T) int64) []string {
	keys := make([]string, 0, len(s.groups))
	for k := range s.groups {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(x, y string) int {
		if a, b := size(s.groups[x]), size(s.groups[y]); a != b {
			return int(b - a)
		}
		return strings.Compare(x, y)
	})
	return keys
}

// by returns the fields of a group key, by name.
func (s *aggregation[T]) by(key string) map[string]string {
	by := map[string]string{}
	for i, v := range strings.Split(key, "\n") {
		by[s.names[i]] = v
	}
	return by
}

// csvRow is one row of a table: the step or the fields of the group, and the figures.
type csvRow struct {
	at      db.Time
	by      map[string]string
	figures any
}

// csvRows returns rows for CSV: by group if there are any names, else by step.
func csvRows(names []string, lines []csvRow, none any) [][]string {
	head, _ := columns(none)
	if len(names) == 0 {
		names = []string{"at"}
	}
	out := [][]string{append(slices.Clone(names), head...)}
	for _, l := range lines {
		var row []string
		for _, n := range names {
			if l.by == nil {
				row = append(row, l.at.String())
				continue
			}
			row = append(row, escapeFormula(l.by[n]))
		}
		_, values := columns(l.figures)
		out = append(out, append(row, values...))
	}
	return out
}

// unique returns the names without duplicates.
func unique(names []string) []string {
	var out []string
	for _, n := range names {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// eachRow calls scan for each row that matches a filter.
func (s *Service) eachRow(ctx context.Context, f *db.Filter, end string, scan func(*sql.Rows) error) error {
	text, args := f.SQL()
	rows, err := s.cfg.DB.Read(ctx).Query(ctx, text+end, args...)
	if err != nil {
		return fmt.Errorf("read rows to count: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return fmt.Errorf("read rows to count: %w", err)
		}
	}
	return rows.Err()
}

// filterCalls adds the filters of the query to a statement that joins the table calls.
func (q callQuery) filterCalls(f *db.Filter) *db.Filter {
	since, until := q.times()
	return q.filterMembers(f.Between("calls.started_at", since, until))
}

// filterEntries adds the filters of the query to a statement about entries of queues, e, that joins the table calls.
func (q callQuery) filterEntries(f *db.Filter) *db.Filter {
	since, until := q.times()
	return q.filterMembers(f.Between("e.entered_at", since, until))
}

// filterMembers adds the filters of the query but the period.
func (q callQuery) filterMembers(f *db.Filter) *db.Filter {
	q.view.Narrow(f, "calls.id")
	for _, d := range dimensions {
		key, ok := q.filters[d]
		switch {
		case ok && d == ByAgent:
			f.And(agentCondition, key)
		case ok:
			f.Equal("calls."+columnOf[d], key)
		}
	}
	for _, t := range q.tags {
		f.And(tagCondition, t)
	}
	return f
}

// ratio returns part of a whole in percent, with two decimals; nil if the whole is 0.
func ratio(part, of float64) *float64 {
	if of == 0 {
		return nil
	}
	return mean(100*part, of)
}

// mean returns sum divided by of, with two decimals; nil if of is 0.
func mean(sum, of float64) *float64 {
	if of == 0 {
		return nil
	}
	v := float64(int64(100*sum/of+0.5)) / 100
	return &v
}
