package sip

import (
	"hash/maphash"
	"runtime"
	"runtime/debug"
	"time"

	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/sip/transport"
)

// Shard: the event loop of the Call-IDs that hash to it, with their transactions, dialogs and timers.

// shard holds every transaction and dialog of the Call-IDs that hash to it. Except for the shardQueue, all fields
// belong to the goroutine that holds the shard's lock: its own goroutine, or one that runs a task while that one is
// parked.
type shard struct {
	shardQueue
	srv     *Server
	stats   *counters
	sender  messageSender
	now     time.Duration
	lowLoad bool // low load: see yieldToCall

	wakeTimer       *time.Timer   // wakes the goroutine for timers
	wakeAt          time.Duration // when it fires; in the past: it has fired
	timers          timers
	serverTxs       map[txKey]*serverTx
	clientTxs       map[clientKey]*clientTx
	txsByConn       map[*transport.Conn]map[*clientTx]struct{} // client transactions by TCP connection
	legs            map[txKey]*Leg
	inviteAttempts  map[txKey]*inviteAttempt
	finishedInvites []uint64 // admission keys of finished INVITEs
	admissionKey    uint64   // admission key of the INVITE being handled, until a transaction holds it
	msg             received
	buf             []byte      // buffer for the message being written
	spareItems      []queueItem // an empty queue for reuse
	counts          shardCounts
}

// messageSender writes messages to the network. It must not keep b and must not block.
type messageSender interface {
	Send(f transport.Flow, b []byte)
}

func newShard(srv *Server, w messageSender, depth int) *shard {
	s := &shard{
		srv: srv, stats: &srv.stats, sender: w,
		serverTxs:      make(map[txKey]*serverTx),
		clientTxs:      make(map[clientKey]*clientTx),
		txsByConn:      make(map[*transport.Conn]map[*clientTx]struct{}),
		legs:           make(map[txKey]*Leg),
		inviteAttempts: make(map[txKey]*inviteAttempt),
		buf:            make([]byte, 0, 4096),
		wakeTimer:      time.NewTimer(time.Hour),
	}
	s.open(depth)
	return s
}

// run processes the queue whenever it is woken, until the queue is closed and empty. Then it ends the remaining legs.
func (s *shard) run() {
	defer s.wakeTimer.Stop()
	rang := false
	for !s.lockAtEnd() {
		if s.tryLock(true) {
			if rang {
				s.wakeAt, rang = 0, false
			}
			s.processQueue()
			s.unlock()
		}
		select {
		case <-s.wake:
		case <-s.wakeTimer.C:
			rang = true
		}
	}
	s.terminateAll()
}

// runOrEnqueue runs a task in the calling goroutine if the shard is not locked. Otherwise the goroutine that holds
// the lock, or the shard's own, runs it soon. That saves two goroutine switches compared with enqueue. The caller may
// run other work of the shard too, so it must hold no lock that a callback takes. After close the task is dropped and
// false returned.
func (s *shard) runOrEnqueue(do func(*shard)) bool {
	if !s.enqueueSilently(do) {
		return false
	}
	s.RunQueued(false)
	return true
}

// RunQueued processes the queue, unless another goroutine holds the shard. calm reports low load.
func (s *shard) RunQueued(calm bool) {
	if !s.tryLock(false) {
		return
	}
	s.lowLoad = calm
	s.processQueue()
	s.lowLoad = false
	if calm && s.hasItems() { // arrived while it yielded
		s.processQueue()
	}
	s.unlock()
}

// yieldToCall yields the processor. So the goroutine of the call handles the event just delivered before this shard sends a 100 or ACK,
// which no peer waits for. Under load it does nothing, because the goroutine and thus the shard would be scheduled after everything else.
func (s *shard) yieldToCall() {
	if s.lowLoad {
		runtime.Gosched()
	}
}

// processQueue handles all queued items and fires the timers that are due. The caller must hold the shard's lock.
func (s *shard) processQueue() {
	items := s.drain(s.spareItems, s.finishedInvites)
	s.finishedInvites = s.finishedInvites[:0]
	s.now = s.srv.clock()
	for i := range items {
		s.handleItem(&items[i])
		items[i] = queueItem{}
	}
	s.spareItems = items
	s.fireTimers(s.srv.clock())
	s.publishCounts()
	s.setWakeTimer()
}

// setWakeTimer makes the wake timer fire when the next timer is due, or earlier.
func (s *shard) setWakeTimer() {
	if len(s.timers) == 0 {
		return
	}
	if at := s.timers[0].at; s.wakeAt <= s.now || at < s.wakeAt {
		s.wakeAt = at
		s.wakeTimer.Reset(at - s.now)
	}
}

// fireTimers runs every timer that is due.
func (s *shard) fireTimers(now time.Duration) {
	s.now = now
	for t := s.timers.popDue(now); t != nil; t = s.timers.popDue(now) {
		s.runRecovered(func() { t.owner.expire(s) })
	}
}

// handleItem handles one item. A panic affects that item only.
func (s *shard) handleItem(it *queueItem) {
	defer s.recoverPanic()
	if it.do != nil {
		it.do(s)
		return
	}
	s.srv.queueDelay.Store(int64(s.now - it.at))
	if s.admissionKey = it.admissionKey; s.admissionKey != 0 {
		defer s.forgetUnfinishedInvite()
	}
	s.handleMessage(it.raw, it.flow)
}

// forgetUnfinishedInvite removes an INVITE from admission if no transaction has taken it.
func (s *shard) forgetUnfinishedInvite() {
	if s.admissionKey != 0 {
		s.finishedInvites = append(s.finishedInvites, s.admissionKey)
	}
}

func (s *shard) runRecovered(do func()) {
	defer s.recoverPanic()
	do()
}

func (s *shard) recoverPanic() {
	if r := recover(); r != nil {
		s.srv.logPanic(r, debug.Stack())
	}
}

func (s *shard) publishCounts() {
	s.counts.serverTxs.Store(int64(len(s.serverTxs)))
	s.counts.clientTxs.Store(int64(len(s.clientTxs)))
	s.counts.legs.Store(int64(len(s.legs)))
}

func (s *shard) terminateAll() {
	for _, l := range s.legs {
		s.runRecovered(func() { l.terminate(Lost{Why: "the server closed"}) })
	}
	s.publishCounts()
}

// keyHasher computes transaction and dialog keys.
type keyHasher struct{ a, b maphash.Seed }

func newKeyHasher() keyHasher { return keyHasher{maphash.MakeSeed(), maphash.MakeSeed()} }

// key hashes the parts, each with a terminator.
func (k keyHasher) key(parts ...string) txKey {
	return txKey{hashParts(k.a, parts), hashParts(k.b, parts)}
}

func hashParts(seed maphash.Seed, parts []string) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, p := range parts {
		h.WriteString(p)
		h.WriteByte(0)
	}
	return h.Sum64()
}

// txKey returns the key of a request's transaction (RFC 3261 §17.2.3). method is the method of the request, or
// INVITE for an ACK or CANCEL that looks for its INVITE.
func (s *shard) txKey(m *received, method string) txKey {
	if m.Via.HasUniqueBranch() {
		return s.srv.hasher.key(m.Via.Branch, m.Via.Host, portText(m.Via.Port), m.CallID, method)
	}
	return s.srv.hasher.key(m.URI, m.From.Tag, m.CallID, seqText(m.CSeq), m.Get(sipmsg.FieldVia), method)
}

func portText(p int) string { return string([]byte{byte(p >> 8), byte(p)}) }
func seqText(n uint32) string {
	return string([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// dialogKey returns the key of a dialog by our tag.
func (s *shard) dialogKey(callID, localTag string) txKey {
	return s.srv.hasher.key("d", callID, localTag)
}
