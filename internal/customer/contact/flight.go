package contact

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// lookupResult is the result of a lookup. It is immutable once it is cached.
type found struct {
	seen     uint64
	matches  []Match // best first
	sources  []SourceStatus
	complete bool // every source has answered
}

// singleflightGroup holds the lookups in progress, one per key. Concurrent lookups of the same key share one.
type flights struct {
	mu    sync.Mutex // guards known
	known map[string]*flight
}

// singleflight is one lookup in all systems of an organisation. It continues after its callers have left, so that
// late results are cached for the next lookup.
type flight struct {
	asked  asked
	query  Query
	seen   uint64
	began  time.Time
	cancel context.CancelFunc
	done   chan struct{} // closed when all sources have answered

	mu      sync.Mutex // guards the rest
	matches []Match
	sources []SourceStatus
	open    map[string]Connected // queried, not answered yet
}

// join returns the lookup in progress for a key. It starts one if there is none, or if it began before the last
// write. If a lookup ended after the caller's cache check, its result is returned instead, unless fresh is true.
func (s *Service) join(a asked, country string, seen uint64, fresh bool, local []Match, statuses []SourceStatus, ask []Connected) (*flight, *found) {
	name := a.org + " " + a.key().value
	s.flights.mu.Lock()
	defer s.flights.mu.Unlock()
	if f := s.flights.known[name]; f != nil && f.seen == seen {
		return f, nil
	}
	if landed, ok := s.cache.get(a); ok && !fresh {
		return nil, landed
	}
	f := &flight{asked: a, query: a.query(country), seen: seen, began: time.Now(), done: make(chan struct{}), matches: local, sources: statuses,
		open: map[string]Connected{}}
	s.flights.known[name] = f
	for _, c := range ask {
		f.open[c.ID] = c
	}
	s.start(f, name, ask)
	return f, nil
}

// start queries all systems concurrently.
func (s *Service) start(f *flight, name string, ask []Connected) {
	ctx, cancel := context.WithCancel(s.over)
	f.cancel = cancel
	var answers sync.WaitGroup
	for _, c := range ask {
		answers.Go(func() {
			began := time.Now()
			records, err := c.Ask(ctx, f.query)
			f.answered(c, records, err, time.Since(began))
		})
	}
	s.running.Go(func() {
		answers.Wait()
		cancel()
		s.land(f, name)
	})
}

// finishLookup caches the result, if it is complete, and ends the lookup.
func (s *Service) land(f *flight, name string) {
	if r := f.result(); r.complete {
		s.cache.keep(f.asked, r)
	}
	s.flights.mu.Lock()
	if s.flights.known[name] == f {
		delete(s.flights.known, name)
	}
	s.flights.mu.Unlock()
	close(f.done)
}

// addAnswer adds the answer of one system. If no other system can give a better match, the remaining queries are
// cancelled.
func (f *flight) answered(c Connected, records []Record, err error, took time.Duration) {
	kept := judge(f.asked, f.query.Country, records)
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, c.ID)
	status := SourceStatus{Source: c.Name, Status: statusOf(err, len(kept)), LookupMS: millis(took), Matches: len(kept)}
	if f.sources = append(f.sources, status); err != nil {
		return
	}
	for _, m := range kept {
		m.connection, m.source, m.priority = c.ID, c.Name, c.Priority
		f.matches = slices.DeleteFunc(f.matches, func(o Match) bool { return o.same(m) }) // the system's answer is newer than its copy in the index
		f.matches = append(f.matches, m)
	}
	slices.SortFunc(f.matches, Match.better)
	if len(f.open) > 0 && f.decided() {
		f.cancel()
	}
}

// isDecided reports whether no open system could give a better match than the present one.
func (f *flight) decided() bool {
	if len(f.matches) == 0 || f.matches[0].Kind != Exact {
		return false
	}
	for _, c := range f.open {
		if c.Priority <= f.matches[0].priority {
			return false
		}
	}
	return true
}

func statusOf(err error, matches int) string {
	switch {
	case err == nil && matches > 0:
		return "hit"
	case err == nil:
		return "miss"
	case errors.Is(err, ErrCircuitOpen):
		return "circuit_open"
	case errors.Is(err, ErrRateLimited):
		return "rate_limited"
	case errors.Is(err, ErrSkipped), errors.Is(err, context.Canceled):
		return "skipped"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return "error"
}

// result returns the matches so far. Systems without an answer have the status timeout.
func (f *flight) result() *found {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &found{seen: f.seen, matches: slices.Clone(f.matches), sources: slices.Clone(f.sources), complete: len(f.open) == 0}
	for _, c := range f.open {
		r.sources = append(r.sources, SourceStatus{Source: c.Name, Status: "timeout", LookupMS: millis(time.Since(f.began))})
	}
	for _, x := range r.sources {
		r.complete = r.complete && x.Status != "timeout"
	}
	slices.SortStableFunc(r.sources, func(a, b SourceStatus) int { return compare(a.Source, b.Source) })
	return r
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// wait returns the result when all systems have answered, the timer fires, or the context ends.
func (f *flight) wait(ctx context.Context, up <-chan time.Time) *found {
	select {
	case <-f.done:
	case <-up:
	case <-ctx.Done():
	}
	return f.result()
}

func millis(d time.Duration) int { return int((d + time.Millisecond - 1) / time.Millisecond) }
