package contact

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// lookupResult is the result of a lookup. It is immutable once it is cached.
type lookupResult struct {
	seenWrites uint64
	matches    []Match // best first
	sources    []SourceStatus
	complete   bool // every source has answered
}

// singleflightGroup holds the lookups in progress, one per key. Concurrent lookups of the same key share one.
type singleflightGroup struct {
	mu    sync.Mutex // guards known
	byKey map[string]*singleflight
}

// singleflight is one lookup in all systems of an organisation. It continues after its callers have left, so that
// late results are cached for the next lookup.
type singleflight struct {
	key        lookupKey
	query      Query
	seenWrites uint64
	began      time.Time
	cancel     context.CancelFunc
	done       chan struct{} // closed when all sources have answered

	mu          sync.Mutex // guards the rest
	matches     []Match
	sources     []SourceStatus
	outstanding map[string]Source // queried, not answered yet
}

// join returns the lookup in progress for a key. It starts one if there is none, or if it began before the last
// write. If a lookup ended after the caller's cache check, its result is returned instead, unless fresh is true.
func (s *Service) join(a lookupKey, country string, seen uint64, fresh bool, local []Match, statuses []SourceStatus,
	ask []Source) (*singleflight, *lookupResult) {
	name := a.org + " " + a.cacheKey().value
	s.inFlight.mu.Lock()
	defer s.inFlight.mu.Unlock()
	if f := s.inFlight.byKey[name]; f != nil && f.seenWrites == seen {
		return f, nil
	}
	if landed, ok := s.results.get(a); ok && !fresh {
		return nil, landed
	}
	f := &singleflight{key: a, query: a.query(country), seenWrites: seen, began: time.Now(), done: make(chan struct{}), matches: local,
		sources: statuses, outstanding: map[string]Source{}}
	s.inFlight.byKey[name] = f
	for _, c := range ask {
		f.outstanding[c.ID] = c
	}
	s.start(f, name, ask)
	return f, nil
}

// start queries all systems concurrently.
func (s *Service) start(f *singleflight, name string, ask []Source) {
	ctx, cancel := context.WithCancel(s.stopCtx)
	f.cancel = cancel
	var answers sync.WaitGroup
	for _, c := range ask {
		answers.Go(func() {
			began := time.Now()
			records, err := c.Live.Lookup(ctx, f.query)
			f.addAnswer(c, records, err, time.Since(began))
		})
	}
	s.running.Go(func() {
		answers.Wait()
		cancel()
		s.finishLookup(f, name)
	})
}

// finishLookup caches the result, if it is complete, and ends the lookup.
func (s *Service) finishLookup(f *singleflight, name string) {
	if r := f.result(); r.complete {
		s.results.put(f.key, r)
	}
	s.inFlight.mu.Lock()
	if s.inFlight.byKey[name] == f {
		delete(s.inFlight.byKey, name)
	}
	s.inFlight.mu.Unlock()
	close(f.done)
}

// addAnswer adds the answer of one system. If no other system can give a better match, the remaining queries are
// cancelled.
func (f *singleflight) addAnswer(c Source, records []Record, err error, took time.Duration) {
	kept := matchRecords(f.key, f.query.Country, records)
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.outstanding, c.ID)
	status := SourceStatus{Source: c.Name, Status: statusOf(err, len(kept)), LookupMS: millis(took), Matches: len(kept)}
	if f.sources = append(f.sources, status); err != nil {
		return
	}
	for _, m := range kept {
		m.connection, m.source, m.priority = c.ID, c.Name, c.Priority
		f.matches = slices.DeleteFunc(f.matches, func(
			o Match) bool {
			return o.same(m)
		}) // the system's answer is newer than its copy in the index
		f.matches = append(f.matches, m)
	}
	slices.SortFunc(f.matches, Match.compare)
	if len(f.outstanding) > 0 && f.isDecided() {
		f.cancel()
	}
}

// isDecided reports whether no open system could give a better match than the present one.
func (f *singleflight) isDecided() bool {
	if len(f.matches) == 0 || f.matches[0].Kind != Exact {
		return false
	}
	for _, c := range f.outstanding {
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
func (f *singleflight) result() *lookupResult {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &lookupResult{seenWrites: f.seenWrites, matches: slices.Clone(f.matches), sources: slices.Clone(f.sources),
		complete: len(f.outstanding) == 0}
	for _, c := range f.outstanding {
		r.sources = append(r.sources, SourceStatus{Source: c.Name, Status: "timeout", LookupMS: millis(time.Since(f.began))})
	}
	for _, x := range r.sources {
		r.complete = r.complete && x.Status != "timeout"
	}
	slices.SortStableFunc(r.sources, func(a, b SourceStatus) int { return compareStrings(a.Source, b.Source) })
	return r
}

func compareStrings(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// wait returns the result when all systems have answered, the timer fires, or the context ends.
func (f *singleflight) wait(ctx context.Context, up <-chan time.Time) *lookupResult {
	select {
	case <-f.done:
	case <-up:
	case <-ctx.Done():
	}
	return f.result()
}

func millis(d time.Duration) int { return int((d + time.Millisecond - 1) / time.Millisecond) }
