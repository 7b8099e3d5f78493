// Package analytics counts calls: by hour, day, week or month, by queue, agent, number and direction.
//
// Calls are counted once, by quarters of an hour in which they began, which fit the hours and days of every time zone. A quarter
// is always counted anew and whole, from the records of its calls, so that counting twice has the effect of once. What no count
// is kept for, such as calls with a tag, is counted from the records when it is asked for.
package analytics

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"log/slog"
	"sync"
	"time"

	"soniq/internal/platform/db"
)

// quarter is the time that calls are counted by.
const quarter = 15 * time.Minute

// Config is what the room is built from.
type Config struct {
	DB  *db.DB
	Now func() time.Time
	Key []byte // of the digests of numbers
	Log *slog.Logger
	// Zone is the time zone of an organisation.
	Zone func(ctx context.Context, org string) (*time.Location, error)
	// Name is the name of a queue or an agent, or "" where there is none; nil: none has one.
	Name func(ctx context.Context, org, dimension, key string) (string, error)
}

// Service counts and answers.
type Service struct {
	Config

	mu     sync.Mutex                // guards the fields below
	dirty  map[string]map[int64]bool // organisation → quarters to be counted
	ready  map[string]bool           // organisations of which everything before the start is counted
	caught bool                      // CatchUp is over
	turns  map[string]*sync.Mutex    // held while an organisation is counted
}

// New builds the room.
func New(c Config) *Service {
	return &Service{Config: c, dirty: map[string]map[int64]bool{}, ready: map[string]bool{}, turns: map[string]*sync.Mutex{}}
}

// quarterOf is the quarter a time lies in, in microseconds.
func quarterOf(t time.Time) int64 { return t.Truncate(quarter).UnixMicro() }

// Ended is to be told of every call that has ended, when it is committed.
func (s *Service) Ended(org string, began time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mark(org, quarterOf(began))
}

// mark has a quarter counted. The caller holds the lock.
func (s *Service) mark(org string, at int64) {
	if s.dirty[org] == nil {
		s.dirty[org] = map[int64]bool{}
	}
	s.dirty[org][at] = true
}

// take returns the quarters of an organisation that are to be counted, and forgets them.
func (s *Service) take(org string) map[int64]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.dirty[org]
	delete(s.dirty, org)
	return all
}

// waiting lists the organisations with something to be counted.
func (s *Service) waiting() (orgs []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for org := range s.dirty {
		orgs = append(orgs, org)
	}
	return orgs
}

// turn is held while an organisation is counted.
func (s *Service) turn(org string) *sync.Mutex {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turns[org] == nil {
		s.turns[org] = &sync.Mutex{}
	}
	return s.turns[org]
}

// digest stands for a number in counts.
func (s *Service) digest(org, number string) uint64 {
	m := hmac.New(sha256.New, s.Key)
	m.Write([]byte(org + "\n" + number))
	return binary.LittleEndian.Uint64(m.Sum(nil))
}
