package record

import (
	"os"
	"sync"
)

// A directorySync calls fsync on directories, so that renames in them are durable. Callers that arrive while an fsync
// runs wait for the next one, which all of them share. It is safe for concurrent use.
type directorySync struct {
	sync func(path string) error

	mu      sync.Mutex // guards the fields below
	running map[string]*syncRound
	next    map[string]*syncRound // rounds that have not begun
}

type syncRound struct {
	done chan struct{}
	err  error
}

var directories = newDirectorySync(syncDirectory)

func newDirectorySync(sync func(path string) error) *directorySync {
	return &directorySync{sync: sync, running: map[string]*syncRound{}, next: map[string]*syncRound{}}
}

// flush returns once all names that are in a directory now are durable.
func (s *directorySync) flush(path string) error {
	t, before, mine := s.joinRound(path)
	if !mine {
		<-t.done
		return t.err
	}
	if before != nil {
		<-before.done
	}
	s.beginRound(path, t)
	t.err = s.sync(path)
	s.endRound(path, t)
	return t.err
}

// joinRound returns the round that has not begun, or creates one. If mine is true, the caller must run the round when
// the round before is done.
func (s *directorySync) joinRound(path string) (t, before *syncRound, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.next[path]; t != nil {
		return t, nil, false
	}
	t = &syncRound{done: make(chan struct{})}
	s.next[path] = t
	return t, s.running[path], true
}

// beginRound closes the round for further callers, because their names may be missing from this fsync.
func (s *directorySync) beginRound(path string, t *syncRound) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.next, path)
	s.running[path] = t
}

func (s *directorySync) endRound(path string, t *syncRound) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[path] == t {
		delete(s.running, path)
	}
	close(t.done)
}

func syncDirectory(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
