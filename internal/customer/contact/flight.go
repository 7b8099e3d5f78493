package contact

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// A found is what is known of a number or an address. It is never changed once it is cached.
type found struct {
	seen     uint64
	matches  []Match // best first
	sources  []SourceStatus
	complete bool // every source has said what it knows
}

// flights are the lookups under way, one for each number: whoever asks for the same joins.
type flights struct {
	mu    sync.Mutex // guards known
	known map[string]*flight
}

// A flight asks the systems of an organisation for one number. It goes on when those who wait have left, so that late answers
// are there for the next who asks.
type flight struct {
	asked  asked
	query  Query
	seen   uint64
	began  time.Time
	cancel context.CancelFunc
	done   chan struct{} // closed when nothing more comes

	mu      sync.Mutex // guards the rest
	matches []Match
	sources []SourceStatus
	open    map[string]Connected // asked, and not answered yet
}

// join returns the flight for a number, and starts one where there is none, or where it began before the last write. One that has
// landed since the cache was asked is not started again: what it found is returned, unless it is to be asked afresh.
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

// start asks all systems at once.
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

// land keeps what the flight found.
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

// answered takes the answer of one system. When it cannot be bettered, the others are let off.
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
		f.matches = slices.DeleteFunc(f.matches, func(o Match) bool { return o.same(m) }) // the system itself knows better than the index
		f.matches = append(f.matches, m)
	}
	slices.SortFunc(f.matches, Match.better)
	if len(f.open) > 0 && f.decided() {
		f.cancel()
	}
}

// decided reports whether no open system could give a better match than there is.
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

// result is what is known now; systems that have not answered are timed out.
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

// wait returns what is known when the flight has landed, or the time is up.
func (f *flight) wait(ctx context.Context, up <-chan time.Time) *found {
	select {
	case <-f.done:
	case <-up:
	case <-ctx.Done():
	}
	return f.result()
}

func millis(d time.Duration) int { return int((d + time.Millisecond - 1) / time.Millisecond) }
