package media

import (
	"os"
	"sync"
)

// A folderSync brings the names in folders to the disk. Who asks while it does so for others waits for the next time, which all share who asked meanwhile.
type folderSync struct {
	sync func(path string) error

	mu   sync.Mutex // guards the two below
	busy map[string]*folderTurn
	next map[string]*folderTurn // those that have not begun
}

type folderTurn struct {
	done chan struct{}
	err  error
}

var folders = newFolderSync(syncFolder)

func newFolderSync(sync func(path string) error) *folderSync {
	return &folderSync{sync: sync, busy: map[string]*folderTurn{}, next: map[string]*folderTurn{}}
}

// settle returns when all names that are in a folder now are on the disk.
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

// join finds the turn that has not begun, or makes one, which is the caller's to do when the one before is done.
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

// begin lets nobody join any more: who comes now has a name that may not be there yet.
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
