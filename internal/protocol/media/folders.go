package media

import (
	"os"
	"sync"
)

// A directorySync calls fsync on directories, so that renames in them are durable. Callers that arrive while an fsync
// runs wait for the next one, which all of them share. It is safe for concurrent use.
type folderSync struct {
	sync func(path string) error

	mu   sync.Mutex // guards the fields below
	busy map[string]*folderTurn
	next map[string]*folderTurn // rounds that have not begun
}

type folderTurn struct {
	done chan struct{}
	err  error
}

var folders = newFolderSync(syncFolder)

func newFolderSync(sync func(path string) error) *folderSync {
	return &folderSync{sync: sync, busy: map[string]*folderTurn{}, next: map[string]*folderTurn{}}
}

// flush returns once all names that are in a directory now are durable.
func (s *folderSync) settle(path string) error {
	t, before, mine := s.join(path)
	if !mine {
		<-t.done
		return t.err
	}
	if before != nil {
		<-before.done
	}
	s.begin(path, t)
	t.err = s.sync(path)
	s.end(path, t)
	return t.err
}

// joinRound returns the round that has not begun, or creates one. If mine is true, the caller must run the round when
// the round before is done.
func (s *folderSync) join(path string) (t, before *folderTurn, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.next[path]; t != nil {
		return t, nil, false
	}
	t = &folderTurn{done: make(chan struct{})}
	s.next[path] = t
	return t, s.busy[path], true
}

// beginRound closes the round for further callers, because their names may be missing from this fsync.
func (s *folderSync) begin(path string, t *folderTurn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.next, path)
	s.busy[path] = t
}

func (s *folderSync) end(path string, t *folderTurn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[path] == t {
		delete(s.busy, path)
	}
	close(t.done)
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
