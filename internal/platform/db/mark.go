package db

import (
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
)

// A Mark changes when something has been committed to one of its tables: what was read of them before may have changed.
type Mark struct{ of []*atomic.Uint64 }

// Now is the mark as it stands. Take it before reading.
func (m *Mark) Now() (sum uint64) {
	for _, n := range m.of {
		sum += n.Load()
	}
	return sum
}

// Mark is of what this process commits to tables, by its own statements and not by triggers or cascades. It is nil on PostgreSQL, where
// other nodes write, too.
func (d *DB) Mark(tables ...string) *Mark {
	s, ok := d.engine.(*sqlite)
	if !ok {
		return nil
	}
	return &Mark{of: s.marks.of(tables)}
}

// marks counts commits by table.
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

// writesTo names the tables that a statement writes to, and perhaps words that are none.
func writesTo(query string) (tables []string) {
	for _, found := range writing.FindAllStringSubmatch(query, -1) {
		tables = append(tables, strings.ToLower(found[1]))
	}
	return tables
}

// written keeps what a transaction has written to until it is committed. It is used by the writer alone.
type written struct {
	marks *marks
	dirty map[*atomic.Uint64]struct{}
}

func (w *written) add(all []*atomic.Uint64) {
	for _, n := range all {
		w.dirty[n] = struct{}{}
	}
}

// committed changes the marks of what was written.
func (w *written) committed() {
	for n := range w.dirty {
		n.Add(1)
	}
	clear(w.dirty)
}
