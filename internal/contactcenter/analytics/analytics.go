// Package analytics counts calls by hour, day, week or month, and by queue, agent, number and direction.
//
// Calls are counted once, by the quarter of an hour in which they began, because quarters fit the hours and days of
// every time zone. A quarter is always counted as a whole from its call records, so that repeating the count changes
// nothing. Filters without stored counts, such as tags, are counted from the call records at query time.
package analytics

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"log/slog"
	"sync"
	"time"

	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/wiring"
)

// quarter is the length of a count interval.
const quarter = 15 * time.Minute

// Config holds the dependencies of the package.
type Config struct {
	DB    *db.DB
	Clock clock.Clock // nil: the system clock
	Key   []byte      // key for the digests of numbers
	Log   *slog.Logger
	Zones Zones
	Names Names
}

// Zones returns the time zone of an organisation.
type Zones interface {
	Zone(ctx context.Context, org string) (*time.Location, error)
}

// Names returns the name of a queue or an agent; "" if it has none.
type Names interface {
	GroupName(ctx context.Context, org, dimension, key string) (string, error)
}

// Service counts calls and answers queries. It is safe for concurrent use.
type Service struct {
	cfg Config

	mu          sync.Mutex                // guards the fields below
	dirty       map[string]map[int64]bool // organisation → quarters to count
	ready       map[string]bool           // organisations with complete counts up to the start
	caughtUp    bool                      // CatchUp has finished
	rollupLocks map[string]*sync.Mutex    // locked while an organisation is counted
}

// New returns a service.
func New(c Config) *Service {
	c.Clock = clock.OrSystem(c.Clock)
	wiring.Check(c)
	return &Service{cfg: c, dirty: map[string]map[int64]bool{}, ready: map[string]bool{}, rollupLocks: map[string]*sync.Mutex{}}
}

// quarterOf returns the start of the quarter that contains t, in microseconds.
func quarterOf(t time.Time) int64 { return t.Truncate(quarter).UnixMicro() }

// CallEnded marks the quarter of a call to be counted. Call it for each ended call after its commit.
func (s *Service) CallEnded(org string, began time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mark(org, quarterOf(began))
}

// mark marks a quarter to be counted. The caller holds s.mu.
func (s *Service) mark(org string, at int64) {
	if s.dirty[org] == nil {
		s.dirty[org] = map[int64]bool{}
	}
	s.dirty[org][at] = true
}

// take returns and clears the marked quarters of an organisation.
func (s *Service) take(org string) map[int64]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.dirty[org]
	delete(s.dirty, org)
	return all
}

// dirtyOrgs returns the organisations with marked quarters.
func (s *Service) dirtyOrgs() (orgs []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for org := range s.dirty {
		orgs = append(orgs, org)
	}
	return orgs
}

// rollupLock returns the lock that is held while an organisation is counted.
func (s *Service) rollupLock(org string) *sync.Mutex {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rollupLocks[org] == nil {
		s.rollupLocks[org] = &sync.Mutex{}
	}
	return s.rollupLocks[org]
}

// digest returns a keyed digest of a number.
func (s *Service) digest(org, number string) uint64 {
	m := hmac.New(sha256.New, s.cfg.Key)
	m.Write([]byte(org + "\n" + number))
	return binary.LittleEndian.Uint64(m.Sum(nil))
}
