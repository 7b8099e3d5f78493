package sip

import (
	"hash/maphash"
	"runtime"
	"runtime/debug"
	"time"
)

// shard owns every transaction and dialog of the Call-IDs that hash to it.
// All its fields but the inbox belong to who works in it: its goroutine, or who
// has something for it while that sleeps.
type shard struct {
	inbox
	srv   *Server
	stats *counters
	wire  wire
	now   time.Duration
	calm  bool // nothing much is going on: see standBack

	alarm     *time.Timer   // wakes the goroutine for timers
	alarmAt   time.Duration // when it rings; past: it has rung
	timers    timers
	servers   map[txKey]*serverTx
	clients   map[clientKey]*clientTx
	waiting   map[*conn]map[*clientTx]struct{} // client transactions by TCP connection
	legs      map[txKey]*Leg
	calls     map[txKey]*attempt
	forgotten []uint64 // marks of INVITEs that finished
	mark      uint64   // of the INVITE being handled, until a transaction has it
	msg       message
	buf       []byte // one message being written
	spare     []item // an empty queue
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

// run works whenever it is woken, until the inbox is closed and empty, then ends what is left.
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

// perform does a task at once where nobody works in the shard, else the one who does will have it done soon: two switches of
// goroutines less than post. The caller may do other work of the shard too; it must hold no lock that a callback takes. After close the task
// is dropped and false returned.
func (s *shard) perform(do func(*shard)) bool {
	if !s.queue(do) {
		return false
	}
	s.help(false)
	return true
}

// help does what is queued, unless somebody is at it. calm says that nothing much is going on.
func (s *shard) help(calm bool) {
	if !s.enter(false) {
		return
	}
	s.calm = calm
	s.work()
	s.calm = false
	if calm && s.waits() { // came while it stood back
		s.work()
	}
	s.leave()
}

// standBack lets the call that was just told of something begin with it before this goes on, which sends what nobody waits for: a 100, an ACK.
// Where much is going on it does not: it would stand behind all of it, and the shard with it.
func (s *shard) standBack() {
	if s.calm {
		runtime.Gosched()
	}
}

// work does everything queued and fires the timers that are due. Only who entered calls it.
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

// arm has the alarm ring when the next timer is due, or before.
func (s *shard) arm() {
	if len(s.timers) == 0 {
		return
	}
	if at := s.timers[0].at; s.alarmAt <= s.now || at < s.alarmAt {
		s.alarmAt = at
		s.alarm.Reset(at - s.now)
	}
}

// fire runs every timer that is due.
func (s *shard) fire(now time.Duration) {
	s.now = now
	for t := s.timers.due(now); t != nil; t = s.timers.due(now) {
		s.guarded(func() { t.owner.expire(s) })
	}
}

// handle does one item; a panic costs that item and nothing else.
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

// unmark forgets an INVITE that came to nothing.
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

// keyer makes transaction and dialog keys.
type keyer struct{ a, b maphash.Seed }

func newKeyer() keyer { return keyer{maphash.MakeSeed(), maphash.MakeSeed()} }

// key hashes parts with their borders.
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

// txKey names the transaction of a request (RFC 3261 §17.2.3); method is that
// of the request, INVITE for an ACK or CANCEL that looks for its INVITE.
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

// dialogKey names a dialog on our side.
func (s *shard) dialogKey(callID, localTag string) txKey {
	return s.srv.keys.key("d", callID, localTag)
}
