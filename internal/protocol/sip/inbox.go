package sip

import (
	"sync"
	"time"
)

// Queue and lock of a shard.

// queueItem is one entry of a shard's queue: a received message, or a task.
type item struct {
	raw  string
	flow flow
	do   func(s *shard)
	at   time.Duration // when the message arrived
	mark uint64        // admission key of a new INVITE; 0 for other items
}

// shardQueue is the queue and the lock of a shard. The number of messages is bounded. The number of tasks is not,
// because the shard itself may enqueue tasks.
type inbox struct {
	mu       sync.Mutex // guards the fields below
	items    []item
	messages int
	known    map[uint64]struct{} // admission keys of INVITEs admitted and not finished
	closed   bool
	working  bool       // a goroutine holds the shard
	missed   bool       // the shard's goroutine failed to take the lock meanwhile
	room     *sync.Cond // signaled when the number of messages falls

	wake  chan struct{}
	depth int // most messages waiting
}

func (b *inbox) open(depth int) {
	b.depth = depth
	b.known = make(map[uint64]struct{})
	b.room = sync.NewCond(&b.mu)
	b.wake = make(chan struct{}, 1)
}

// enqueue queues a task for the shard's goroutine and wakes it. After close the task is dropped and false returned.
func (b *inbox) post(do func(s *shard)) bool {
	ok := b.queue(do)
	b.ring()
	return ok
}

// enqueueSilently queues a task and wakes no goroutine.
func (b *inbox) queue(do func(s *shard)) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.items = append(b.items, item{do: do})
	return true
}

// pushMessage queues a message and wakes no goroutine. With wait it blocks while the queue is full, so that TCP flow
// control slows the peer. Without wait it returns false instead.
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

// tryLock locks the shard for the caller, unless another goroutine holds it. With insist, unlock then wakes the
// shard's goroutine.
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

// hasItems reports whether anything is queued.
func (b *inbox) waits() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.items) > 0
}

// unlock releases the shard. If items remain, or the shard's goroutine failed to lock meanwhile, it wakes that
// goroutine.
func (b *inbox) leave() {
	b.mu.Lock()
	left := len(b.items) > 0 || b.missed || b.closed
	b.working, b.missed = false, false
	b.mu.Unlock()
	if left {
		b.ring()
	}
}

// lockAtEnd locks the shard for good once the queue is closed and empty, and reports whether it did.
func (b *inbox) over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed || b.working || len(b.items) > 0 {
		return false
	}
	b.working = true
	return true
}

// admissionState reports whether an INVITE was already admitted, and the number of waiting messages.
func (b *inbox) admitted(mark uint64) (known bool, waiting int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, known = b.known[mark]
	return known, b.messages
}

// admit records an INVITE, so that its retransmissions are never refused.
func (b *inbox) admit(mark uint64) {
	b.mu.Lock()
	b.known[mark] = struct{}{}
	b.mu.Unlock()
}

// drain returns all queued items and removes finished INVITEs from admission. spare becomes the next queue.
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
