package smpp

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"sync"
	"time"
)

// Key identifies a concatenated message whose parts are collected.
type Key struct {
	Account, From, To string
	Segment           Segment // with Sequence 0
}

// Fragment is a received part of a concatenated message. MessageID is the identifier that the server gave it.
type Fragment struct {
	Key       Key
	Sequence  uint8
	MessageID string
	Bind      string // on which the server received it
	Octets    []byte // the text; GSM 7 bit is unpacked
	Message   Message
	At        time.Time
}

// AddResult is the result of adding a fragment.
type AddResult struct {
	Complete  []Fragment // all parts in order if none is missing, else nil
	Duplicate bool       // the part is or was stored; MessageID is the identifier that it got then
	MessageID string
}

// PartStore stores the parts of concatenated messages until they are complete. A part is acknowledged when Add has
// returned. Only a store on disk therefore survives a crash; NewMemoryPartStore keeps the parts in memory.
type PartStore interface {
	// Add stores a part. If the result has the complete message, the caller must call Done.
	Add(ctx context.Context, f Fragment) (AddResult, error)
	// Done removes a message that was handed on, or keeps it for the next attempt.
	Done(ctx context.Context, k Key, handedOn bool) error
	// Expired returns incomplete messages whose first part came before a time. The caller must call Done for each.
	Expired(ctx context.Context, before time.Time) ([][]Fragment, error)
}

// Limits of parts in memory.
const (
	maxIncomplete          = 1024 // messages
	maxIncompletePerSender = 16   // messages of one sender
	maxFragmentOctets      = 4096
)

var (
	errPartsFull = errors.New("smpp: too many long messages are incomplete")
	errPartsBusy = errors.New("smpp: the message is being processed")
)

// NewMemoryPartStore returns a store in memory: at most 1024 messages, 16 of one sender, each part up to 4096 octets.
func NewMemoryPartStore() PartStore {
	return &memoryParts{open: map[Key]*collection{}, done: map[Key]*collection{}, senders: map[string]int{}}
}

type memoryParts struct {
	mu      sync.Mutex
	open    map[Key]*collection
	done    map[Key]*collection // completed messages, so that repeated parts are recognised
	senders map[string]int
}

type collection struct {
	since     time.Time
	parts     map[uint8]Fragment
	checksums map[uint8]uint64
	busy      bool
}

// Add implements PartStore.
func (p *memoryParts) Add(_ context.Context, f Fragment) (AddResult, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(f.Octets) > maxFragmentOctets {
		return AddResult{}, BadMessageLength
	}
	sum := f.checksum()
	if d := p.done[f.Key]; d != nil && d.checksums[f.Sequence] == sum {
		return AddResult{Duplicate: true, MessageID: d.parts[f.Sequence].MessageID}, nil
	}
	c, err := p.collection(f, sum)
	if err != nil {
		return AddResult{}, err
	}
	if had, again := c.parts[f.Sequence]; again {
		return c.result(AddResult{Duplicate: true, MessageID: had.MessageID}), nil
	}
	c.parts[f.Sequence], c.checksums[f.Sequence] = f, sum
	return c.result(AddResult{MessageID: f.MessageID}), nil
}

// collection returns the message to which a part belongs, or creates it. If a part with the same number has another
// text, a new message begins, because the sender has reused the reference.
func (p *memoryParts) collection(f Fragment, sum uint64) (*collection, error) {
	c := p.open[f.Key]
	if c != nil && c.busy {
		return nil, errPartsBusy
	}
	if c != nil {
		if old, ok := c.checksums[f.Sequence]; !ok || old == sum {
			return c, nil
		}
		p.remove(f.Key)
	}
	sender := f.Key.Account + "\x00" + f.Key.From
	if len(p.open) >= maxIncomplete || p.senders[sender] >= maxIncompletePerSender {
		return nil, errPartsFull
	}
	c = &collection{since: f.At, parts: map[uint8]Fragment{}, checksums: map[uint8]uint64{}}
	p.open[f.Key] = c
	p.senders[sender]++
	return c, nil
}

func (p *memoryParts) remove(k Key) {
	delete(p.open, k)
	sender := k.Account + "\x00" + k.From
	if p.senders[sender]--; p.senders[sender] <= 0 {
		delete(p.senders, sender)
	}
}

// result sets the complete message if no part is missing.
func (c *collection) result(a AddResult) AddResult {
	for _, f := range c.parts {
		if len(c.parts) == int(f.Key.Segment.Total) {
			c.busy, a.Complete = true, c.sorted()
		}
		break
	}
	return a
}

func (c *collection) sorted() []Fragment {
	var all []Fragment
	for _, f := range c.parts {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b Fragment) int { return int(a.Sequence) - int(b.Sequence) })
	return all
}

// Done implements PartStore.
func (p *memoryParts) Done(_ context.Context, k Key, handedOn bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.open[k]
	if c == nil {
		return nil
	}
	c.busy = false
	if !handedOn {
		return nil
	}
	p.remove(k)
	for n, f := range c.parts { // the texts are no longer needed
		c.parts[n] = Fragment{MessageID: f.MessageID}
	}
	if p.done[k] != nil || len(p.done) < 4*maxIncomplete {
		p.done[k] = c
	}
	return nil
}

// Expired implements PartStore.
func (p *memoryParts) Expired(_ context.Context, before time.Time) ([][]Fragment, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, c := range p.done {
		if c.since.Before(before) {
			delete(p.done, k)
		}
	}
	var late [][]Fragment
	for _, c := range p.open {
		if !c.busy && c.since.Before(before) {
			c.busy = true
			late = append(late, c.sorted())
		}
	}
	return late, nil
}

// checksum returns a hash that distinguishes texts; it is never zero.
func (f Fragment) checksum() uint64 {
	h := fnv.New64a()
	h.Write([]byte{f.Message.DataCoding})
	h.Write(f.Octets)
	return h.Sum64() | 1
}
