package db

import (
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
)

// ChangeCounter counts commits to a set of tables. A changed value means that data read before may be stale.
type Mark struct{ of []*atomic.Uint64 }

// Value returns the current count. Read it before reading the data.
func (m *Mark) Now() (sum uint64) {
	for _, n := range m.of {
		sum += n.Load()
	}
	return sum
}

// ChangeCounter returns a counter of this process's commits to tables. It sees statements, not triggers or cascades.
// It is nil on PostgreSQL, where other nodes write too.
func (d *DB) Mark(tables ...string) *Mark {
	s, ok := d.engine.(*sqlite)
	if !ok {
		return nil
	}
	return &Mark{of: s.marks.of(tables)}
}

// changeCounters holds the commit counts by table.
type marks struct {
	mu sync.Mutex // guards by
	by map[string]*atomic.Uint64
}

func (m *marks) of(tables []string) (all []*atomic.Uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.by == nil {
		m.by = map[string]*atomic.Uint64{}
	}
	for _, t := range tables {
		if m.by[t] == nil {
			m.by[t] = new(atomic.Uint64)
		}
		all = append(all, m.by[t])
	}
	return all
}

var writing = regexp.MustCompile(`(?i)\b(?:INTO|UPDATE|DELETE\s+FROM)\s+"?(\w+)`)

// writesTo returns the names of the tables that a statement writes to. It may return other words as well.
func writesTo(query string) (tables []string) {
	for _, found := range writing.FindAllStringSubmatch(query, -1) {
		tables = append(tables, strings.ToLower(found[1]))
	}
	return tables
}

// written collects the tables that a transaction writes to until its commit. Only the writer goroutine uses it.
type written struct {
	marks *marks
	dirty map[*atomic.Uint64]struct{}
}

func (w *written) add(all []*atomic.Uint64) {
	for _, n := range all {
		w.dirty[n] = struct{}{}
	}
}

// committed increments the counters of the written tables.
func (w *written) committed() {
	for n := range w.dirty {
		n.Add(1)
	}
	clear(w.dirty)
}
