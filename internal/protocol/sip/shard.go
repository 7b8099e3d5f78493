package sip

import (
	"hash/maphash"
	"runtime"
	"runtime/debug"
	"time"
)

// Shard: the event loop of the Call-IDs that hash to it, with their transactions, dialogs and timers.

// shard holds every transaction and dialog of the Call-IDs that hash to it. Except for the shardQueue, all fields
// belong to the goroutine that holds the shard's lock: its own goroutine, or one that runs a task while that one is
// parked.
type shard struct {
	inbox
	srv   *Server
	stats *counters
	wire  wire
	now   time.Duration
	calm  bool // low load: see yieldToCall

	alarm     *time.Timer   // wakes the goroutine for timers
	alarmAt   time.Duration // when it fires; in the past: it has fired
	timers    timers
	servers   map[txKey]*serverTx
	clients   map[clientKey]*clientTx
	waiting   map[*conn]map[*clientTx]struct{} // client transactions by TCP connection
	legs      map[txKey]*Leg
	calls     map[txKey]*attempt
	forgotten []uint64 // admission keys of finished INVITEs
	mark      uint64   // admission key of the INVITE being handled, until a transaction holds it
	msg       message
	buf       []byte // buffer for the message being written
	spare     []item // an empty queue for reuse
	has       holdings
}

func newShard(srv *Server, w wire, depth int) *shard {
	s := &shard{
		srv: srv, stats: &srv.stats, wire: w,
		servers: make(map[txKey]*serverTx),
		clients: make(map[clientKey]*clientTx),
		waiting: make(map[*conn]map[*clientTx]struct{}),
		legs:    make(map[txKey]*Leg),
		calls:   make(map[txKey]*attempt),
		buf:     make([]byte, 0, 4096),
		alarm:   time.NewTimer(time.Hour),
	}
	s.open(depth)
	return s
}

// run processes the queue whenever it is woken, until the queue is closed and empty. Then it ends the remaining legs.
func (s *shard) run() {
	defer s.alarm.Stop()
	rang := false
	for !s.over() {
		if s.enter(true) {
			if rang {
				s.alarmAt, rang = 0, false
			}
			s.work()
			s.leave()
		}
		select {
		case <-s.wake:
		case <-s.alarm.C:
			rang = true
		}
	}
	s.endAll()
}

// runOrEnqueue runs a task in the calling goroutine if the shard is not locked. Otherwise the goroutine that holds
// the lock, or the shard's own, runs it soon. That saves two goroutine switches compared with enqueue. The caller may
// run other work of the shard too, so it must hold no lock that a callback takes. After close the task is dropped and
// false returned.
func (s *shard) perform(do func(*shard)) bool {
	if !s.queue(do) {
		return false
	}
	s.help(false)
	return true
}

// runQueued processes the queue, unless another goroutine holds the shard. calm reports low load.
func (s *shard) help(calm bool) {
	if !s.enter(false) {
		return
	}
	s.calm = calm
	s.work()
	s.calm = false
	if calm && s.waits() { // arrived while it yielded
		s.work()
	}
	s.leave()
}

// yieldToCall yields the processor, so that the goroutine of the call handles the event just delivered before this
// shard sends a 100 or ACK, which no peer waits for. Under load it does nothing, because the goroutine and thus the
// shard would be scheduled after everything else.
func (s *shard) standBack() {
	if s.calm {
		runtime.Gosched()
	}
}

// processQueue handles all queued items and fires the timers that are due. The caller must hold the shard's lock.
func (s *shard) work() {
	items := s.take(s.spare, s.forgotten)
	s.forgotten = s.forgotten[:0]
	s.now = s.srv.clock()
	for i := range items {
		s.handle(&items[i])
		items[i] = item{}
	}
	s.spare = items
	s.fire(s.srv.clock())
	s.gauge()
	s.arm()
}

// setWakeTimer makes the wake timer fire when the next timer is due, or earlier.
func (s *shard) arm() {
	if len(s.timers) == 0 {
		return
	}
	if at := s.timers[0].at; s.alarmAt <= s.now || at < s.alarmAt {
		s.alarmAt = at
		s.alarm.Reset(at - s.now)
	}
}

// fireTimers runs every timer that is due.
func (s *shard) fire(now time.Duration) {
	s.now = now
	for t := s.timers.due(now); t != nil; t = s.timers.due(now) {
		s.guarded(func() { t.owner.expire(s) })
	}
}

// handleItem handles one item. A panic affects that item only.
func (s *shard) handle(it *item) {
	defer s.recovered()
	if it.do != nil {
		it.do(s)
		return
	}
	s.srv.lag.Store(int64(s.now - it.at))
	if s.mark = it.mark; s.mark != 0 {
		defer s.unmark()
	}
	s.message(it.raw, it.flow)
}

// forgetUnfinishedInvite removes an INVITE from admission if no transaction has taken it.
func (s *shard) unmark() {
	if s.mark != 0 {
		s.forgotten = append(s.forgotten, s.mark)
	}
}

func (s *shard) guarded(do func()) {
	defer s.recovered()
	do()
}

func (s *shard) recovered() {
	if r := recover(); r != nil {
		s.srv.panicked(r, debug.Stack())
	}
}

func (s *shard) gauge() {
	s.has.servers.Store(int64(len(s.servers)))
	s.has.clients.Store(int64(len(s.clients)))
	s.has.legs.Store(int64(len(s.legs)))
}

func (s *shard) endAll() {
	for _, l := range s.legs {
		s.guarded(func() { l.end(Lost{Why: "the server closed"}) })
	}
	s.gauge()
}

// keyHasher computes transaction and dialog keys.
type keyer struct{ a, b maphash.Seed }

func newKeyer() keyer { return keyer{maphash.MakeSeed(), maphash.MakeSeed()} }

// key hashes the parts, each with a terminator.
func (k keyer) key(parts ...string) txKey {
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
func (s *shard) txKey(m *message, method string) txKey {
	if m.via.modern() {
		return s.srv.keys.key(m.via.branch, m.via.host, portText(m.via.port), m.callID, method)
	}
	return s.srv.keys.key(m.uri, m.from.tag, m.callID, seqText(m.cseq), m.get(fVia), method)
}

func portText(p int) string { return string([]byte{byte(p >> 8), byte(p)}) }
func seqText(n uint32) string {
	return string([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// dialogKey returns the key of a dialog by our tag.
func (s *shard) dialogKey(callID, localTag string) txKey {
	return s.srv.keys.key("d", callID, localTag)
}
