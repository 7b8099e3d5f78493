package sip

import (
	"sync"
	"time"

	"soniq/internal/protocol/sip/transport"
)

// Queue and lock of a shard.

// queueItem is one entry of a shard's queue: a received message, or a task.
type queueItem struct {
	raw          string
	flow         transport.Flow
	do           func(s *shard)
	at           time.Duration // when the message arrived
	admissionKey uint64        // admission key of a new INVITE; 0 for other items
}

// shardQueue is the queue and the lock of a shard. The number of messages is bounded. The number of tasks is not,
// because the shard itself may enqueue tasks.
type shardQueue struct {
	mu              sync.Mutex // guards the fields below
	items           []queueItem
	messageCount    int
	admittedInvites map[uint64]struct{} // admission keys of INVITEs admitted and not finished
	closed          bool
	locked          bool       // a goroutine holds the shard
	wakeAfterUnlock bool       // the shard's goroutine failed to take the lock meanwhile
	notFull         *sync.Cond // signalled when the number of messages falls

	wake  chan struct{}
	depth int // most messages waiting
}

func (b *shardQueue) open(depth int) {
	b.depth = depth
	b.admittedInvites = make(map[uint64]struct{})
	b.notFull = sync.NewCond(&b.mu)
	b.wake = make(chan struct{}, 1)
}

// enqueue queues a task for the shard's goroutine and wakes it. After close the task is dropped and false returned.
func (b *shardQueue) enqueue(do func(s *shard)) bool {
	ok := b.enqueueSilently(do)
	b.Signal()
	return ok
}

// enqueueSilently queues a task and wakes no goroutine.
func (b *shardQueue) enqueueSilently(do func(s *shard)) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.items = append(b.items, queueItem{do: do})
	return true
}

// pushMessage queues a message and wakes no goroutine. With wait it blocks while the queue is full, so that TCP flow
// control slows the peer. Without wait it returns false instead.
func (b *shardQueue) pushMessage(it queueItem, wait bool) bool {
	b.mu.Lock()
	for b.messageCount >= b.depth && !b.closed && wait {
		b.notFull.Wait()
	}
	ok := b.messageCount < b.depth && !b.closed
	if ok {
		b.items = append(b.items, it)
		b.messageCount++
	} else {
		delete(b.admittedInvites, it.admissionKey)
	}
	b.mu.Unlock()
	return ok
}

// tryLock locks the shard for the caller, unless another goroutine holds it. With insist, unlock then wakes the
// shard's goroutine.
func (b *shardQueue) tryLock(insist bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.locked {
		b.wakeAfterUnlock = b.wakeAfterUnlock || insist
		return false
	}
	b.locked = true
	return true
}

// hasItems reports whether anything is queued.
func (b *shardQueue) hasItems() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.items) > 0
}

// unlock releases the shard. If items remain, or the shard's goroutine failed to lock meanwhile, it wakes that
// goroutine.
func (b *shardQueue) unlock() {
	b.mu.Lock()
	left := len(b.items) > 0 || b.wakeAfterUnlock || b.closed
	b.locked, b.wakeAfterUnlock = false, false
	b.mu.Unlock()
	if left {
		b.Signal()
	}
}

// lockAtEnd locks the shard for good once the queue is closed and empty, and reports whether it did.
func (b *shardQueue) lockAtEnd() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed || b.locked || len(b.items) > 0 {
		return false
	}
	b.locked = true
	return true
}

// admissionState reports whether an INVITE was already admitted, and the number of waiting messages.
func (b *shardQueue) admissionState(mark uint64) (known bool, waiting int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, known = b.admittedInvites[mark]
	return known, b.messageCount
}

// admit records an INVITE, so that its retransmissions are never refused.
func (b *shardQueue) admit(mark uint64) {
	b.mu.Lock()
	b.admittedInvites[mark] = struct{}{}
	b.mu.Unlock()
}

// drain returns all queued items and removes finished INVITEs from admission. spare becomes the next queue.
func (b *shardQueue) drain(spare []queueItem, forgotten []uint64) []queueItem {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, mark := range forgotten {
		delete(b.admittedInvites, mark)
	}
	items := b.items
	b.items = spare[:0]
	if b.messageCount > 0 {
		b.messageCount = 0
		b.notFull.Broadcast()
	}
	return items
}

func (b *shardQueue) close() {
	b.mu.Lock()
	b.closed = true
	b.notFull.Broadcast()
	b.mu.Unlock()
	b.Signal()
}

func (b *shardQueue) Signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}
