package db

import (
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
)

// ChangeCounter counts commits to a set of tables. A changed value means that data read before may be stale.
type ChangeCounter struct{ counters []*atomic.Uint64 }

// Value returns the current count. Read it before reading the data.
func (m *ChangeCounter) Value() (sum uint64) {
	for _, n := range m.counters {
		sum += n.Load()
	}
	return sum
}

// ChangeCounter returns a counter of this process's commits to tables. It sees statements, not triggers or cascades.
// It is nil on PostgreSQL, where other nodes write too.
func (d *DB) ChangeCounter(tables ...string) *ChangeCounter {
	s, ok := d.engine.(*sqlite)
	if !ok {
		return nil
	}
	return &ChangeCounter{counters: s.counters.of(tables)}
}

// changeCounters holds the commit counts by table.
type changeCounters struct {
	mu sync.Mutex // guards by
	by map[string]*atomic.Uint64
}

func (m *changeCounters) of(tables []string) (all []*atomic.Uint64) {
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

var writePattern = regexp.MustCompile(`(?i)\b(?:INTO|UPDATE|DELETE\s+FROM)\s+"?(\w+)`)

// writesTo returns the names of the tables that a statement writes to. It may return other words as well.
func writesTo(query string) (tables []string) {
	for _, found := range writePattern.FindAllStringSubmatch(query, -1) {
		tables = append(tables, strings.ToLower(found[1]))
	}
	return tables
}

// written collects the tables that a transaction writes to until its commit. Only the writer goroutine uses it.
type written struct {
	counters *changeCounters
	dirty    map[*atomic.Uint64]struct{}
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
