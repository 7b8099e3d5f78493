package sip

import (
	"hash/maphash"
	"runtime/debug"
	"time"
)

// shard owns every transaction and dialog of the Call-IDs that hash to it.
// All its fields but the inbox belong to its goroutine.
type shard struct {
	inbox
	srv   *Server
	stats *counters
	wire  wire
	now   time.Duration

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
	}
	s.open(depth)
	return s
}

// run works until the inbox is closed and empty, then ends what is left.
func (s *shard) run(clock func() time.Duration) {
	alarm := time.NewTimer(time.Hour)
	defer alarm.Stop()
	var spare []item
	for {
		items := s.take(spare, s.forgotten)
		s.forgotten = s.forgotten[:0]
		s.now = clock()
		for i := range items {
			s.handle(&items[i])
			items[i] = item{}
		}
		spare = items
		s.fire(clock())
		s.gauge()
		if len(items) > 0 {
			continue
		}
		if s.over() {
			s.endAll()
			return
		}
		s.sleep(alarm, clock)
	}
}

func (s *shard) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed && len(s.items) == 0
}

func (s *shard) sleep(alarm *time.Timer, clock func() time.Duration) {
	wait := time.Hour
	if len(s.timers) > 0 {
		wait = max(0, s.timers[0].at-clock())
	}
	alarm.Reset(wait)
	select {
	case <-s.wake:
	case <-alarm.C:
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
	s.stats.serverTx.Store(s, len(s.servers))
	s.stats.clientTx.Store(s, len(s.clients))
	s.stats.dialogs.Store(s, len(s.legs))
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
