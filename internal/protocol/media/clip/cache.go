package clip

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"weak"
)

// Decoders is the number of decoders that work at the same moment in the process. DecodersOfOwner is that of an owner: of the files of
// one folder.
const (
	Decoders        = 2
	DecodersOfOwner = 1
)

// turns lets decoders work a piece at a time. A long file of one owner delays those of others by some pieces only.
var turns = struct {
	mu     sync.Mutex // guards owners
	owners map[string]*turn
	places chan struct{}
}{owners: map[string]*turn{}, places: make(chan struct{}, Decoders)}

// turn is the lock of an owner, and the number of decoders that have it or wait for it.
type turn struct {
	lock  sync.Mutex
	users int
}

// takeTurn waits until a decoder of an owner may work. The function that it returns ends the turn.
func takeTurn(owner string) (end func()) {
	turns.mu.Lock()
	t := turns.owners[owner]
	if t == nil {
		t = &turn{}
		turns.owners[owner] = t
	}
	t.users++
	turns.mu.Unlock()
	t.lock.Lock()
	turns.places <- struct{}{}
	return func() {
		<-turns.places
		t.lock.Unlock()
		turns.mu.Lock()
		defer turns.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(turns.owners, owner)
		}
	}
}

// CacheBytes is the memory of clips that are kept although no call plays them.
const CacheBytes = 64 << 20

// loaded is the cache of the process.
var loaded = &cache{entries: map[string]*entry{}}

// cache keeps decoded files. Clips in use are found as long as anything refers to them. Others are kept within CacheBytes, which the
// owners share: the
// oldest clip of the owner with the most bytes is dropped first.
type cache struct {
	mu      sync.Mutex // guards the fields below
	entries map[string]*entry
	kept    []*entry // oldest first
}

// entry is a decoded file.
type entry struct {
	key, owner string
	loading    sync.Mutex
	clip       weak.Pointer[Clip]
	strong     *Clip // nil: not kept; guarded by the cache
	cost       int
}

// load returns the clip of a file. A changed file has another key.
func (c *cache) load(path string) (*Clip, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("load clip: %w", err)
	}
	e := c.entry(fmt.Sprintf("%s %d %d", path, info.Size(), info.ModTime().UnixNano()), filepath.Dir(path))
	e.loading.Lock()
	defer e.loading.Unlock()
	if clip := e.clip.Value(); clip != nil {
		c.keep(e, clip)
		return clip, nil
	}
	clip, err := read(path)
	if err != nil {
		c.forget(e)
		return nil, err
	}
	e.clip = weak.Make(clip)
	runtime.AddCleanup(clip, c.forget, e)
	c.keep(e, clip)
	return clip, nil
}

func (c *cache) entry(key, owner string) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[key]
	if e == nil {
		e = &entry{key: key, owner: owner}
		c.entries[key] = e
	}
	return e
}

// forget removes an entry that has no clip.
func (c *cache) forget(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[e.key] == e && e.strong == nil && e.clip.Value() == nil {
		delete(c.entries, e.key)
	}
}

// keep makes a clip the newest of the kept ones, and drops others until the rest fits.
func (c *cache) keep(e *entry, clip *Clip) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(e)
	e.strong, e.cost = clip, clip.cost()
	c.kept = append(c.kept, e)
	for c.size("") > CacheBytes {
		c.drop(c.oldestOfHeaviest())
	}
}

// cost is the memory of a clip. A file costs a descriptor and room on the disk, counted as a part of its size.
func (c *Clip) cost() int {
	if c.file != nil {
		return c.length / 8
	}
	return 2*c.length + 1024
}

func (c *cache) drop(e *entry) {
	e.strong = nil
	for i, other := range c.kept {
		if other == e {
			c.kept = append(c.kept[:i], c.kept[i+1:]...)
			return
		}
	}
}

// size returns the memory of the kept clips of an owner; of all owners if owner is empty.
func (c *cache) size(owner string) (n int) {
	for _, e := range c.kept {
		if owner == "" || e.owner == owner {
			n += e.cost
		}
	}
	return n
}

// oldestOfHeaviest returns the oldest kept clip of the owner with the most bytes.
func (c *cache) oldestOfHeaviest() (oldest *entry) {
	sizes, most := map[string]int{}, 0
	for _, e := range c.kept {
		sizes[e.owner] += e.cost
		most = max(most, sizes[e.owner])
	}
	for _, e := range c.kept {
		if sizes[e.owner] == most {
			return e
		}
	}
	return nil
}

// nameless creates a file beside another one, and removes its name. The system removes it with its last descriptor, also after a crash.
func nameless(beside string) (*os.File, error) {
	f, err := os.CreateTemp(filepath.Dir(beside), ".clip-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
