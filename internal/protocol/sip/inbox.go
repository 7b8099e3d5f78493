package sip

import (
	"sync"
	"time"
)

// item is one thing for a shard to do: a message off the wire, or a task.
type item struct {
	raw  string
	flow flow
	do   func(s *shard)
	at   time.Duration // when the message came
	mark uint64        // of a new INVITE
}

// inbox is a shard's queue. Messages are bounded; tasks are not, because who
// posts them may be the shard itself.
type inbox struct {
	mu       sync.Mutex // guards what follows
	items    []item
	messages int
	known    map[uint64]struct{} // INVITEs admitted and not finished
	closed   bool
	working  bool       // somebody works in the shard
	missed   bool       // the shard's goroutine wanted to, meanwhile
	room     *sync.Cond // messages became fewer

	wake  chan struct{}
	depth int // most messages waiting
}

func (b *inbox) open(depth int) {
	b.depth = depth
	b.known = make(map[uint64]struct{})
	b.room = sync.NewCond(&b.mu)
	b.wake = make(chan struct{}, 1)
}

// post queues a task for the shard's goroutine; after close it is dropped and false returned.
func (b *inbox) post(do func(s *shard)) bool {
	ok := b.queue(do)
	b.ring()
	return ok
}

// queue queues a task and tells nobody.
func (b *inbox) queue(do func(s *shard)) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.items = append(b.items, item{do: do})
	return true
}

// push queues a message and tells nobody. With wait it blocks while the queue is full, so that
// TCP holds the peer back; without, it returns false.
func (b *inbox) push(it item, wait bool) bool {
	b.mu.Lock()
	for b.messages >= b.depth && !b.closed && wait {
		b.room.Wait()
	}
	ok := b.messages < b.depth && !b.closed
	if ok {
		b.items = append(b.items, it)
		b.messages++
	} else {
		delete(b.known, it.mark)
	}
	b.mu.Unlock()
	return ok
}

// enter makes the caller the one who works in the shard, unless somebody does. With insist the shard's goroutine is woken when that one leaves.
func (b *inbox) enter(insist bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.working {
		b.missed = b.missed || insist
		return false
	}
	b.working = true
	return true
}

// waits tells whether anything is queued.
func (b *inbox) waits() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.items) > 0
}

// leave ends that, and leaves what came meanwhile to the shard's goroutine.
func (b *inbox) leave() {
	b.mu.Lock()
	left := len(b.items) > 0 || b.missed || b.closed
	b.working, b.missed = false, false
	b.mu.Unlock()
	if left {
		b.ring()
	}
}

// over enters for ever once the inbox is closed and empty.
func (b *inbox) over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed || b.working || len(b.items) > 0 {
		return false
	}
	b.working = true
	return true
}

// admitted tells whether an INVITE was let in before, and how many messages
// wait.
func (b *inbox) admitted(mark uint64) (known bool, waiting int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, known = b.known[mark]
	return known, b.messages
}

// admit remembers an INVITE, so that its retransmissions are never refused.
func (b *inbox) admit(mark uint64) {
	b.mu.Lock()
	b.known[mark] = struct{}{}
	b.mu.Unlock()
}

// take returns everything queued and forgets finished INVITEs. spare becomes
// the next queue.
func (b *inbox) take(spare []item, forgotten []uint64) []item {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, mark := range forgotten {
		delete(b.known, mark)
	}
	items := b.items
	b.items = spare[:0]
	if b.messages > 0 {
		b.messages = 0
		b.room.Broadcast()
	}
	return items
}

func (b *inbox) close() {
	b.mu.Lock()
	b.closed = true
	b.room.Broadcast()
	b.mu.Unlock()
	b.ring()
}

func (b *inbox) ring() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}
