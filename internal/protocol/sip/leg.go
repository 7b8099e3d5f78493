package sip

import (
	"errors"
	"strconv"
	"sync/atomic"
	"time"
)

// Errors of legs and servers.
var (
	ErrOver   = errors.New("sip: the leg is over")
	ErrClosed = errors.New("sip: the server is closed")
	// ErrPending: an earlier Reinvite of ours is not answered yet.
	ErrPending = errors.New("sip: another offer is under way")
)

// StatusError is a final failure to a request inside a dialog or a REGISTER.
type StatusError struct {
	Method string
	Status int
	Reason string
	Unsent bool // nobody answered: there is no way to the other side any more
}

func (e *StatusError) Error() string {
	return "sip: " + e.Method + " refused: " + strconv.Itoa(e.Status) + " " + e.Reason
}

// Leg is a dialog with one phone or trunk, or the attempt at one.
type Leg struct {
	shard   *shard
	callID  string
	over    atomic.Bool // no event follows
	counted atomic.Bool // it is one of Stats.Calls
	gone    chan struct{}

	// What follows belongs to the shard's goroutine.
	timer
	on      func(Event)
	backlog []Event // until on is set
	key     txKey

	state     legState
	inbound   bool
	symmetric bool // a phone: requests go back the way its own came
	lateOffer bool // inbound: the INVITE had no offer
	agreed    bool // inbound: the first offer is answered
	updates   bool // the other side takes UPDATE
	updating  bool // an UPDATE of ours with an offer is not answered
	withdrawn bool // nobody waits for the answer to reinvite

	local, remote string // From and To values of our requests, with tags
	localTag      string
	remoteTag     string
	localSeq      uint32
	remoteSeq     uint32
	inviteSeq     uint32 // of the INVITE that made an inbound leg
	ackSeq        uint32
	path          path
	flow          flow   // how the peer reaches us
	contact       string // our Contact value
	keys          keyring
	ackAuth       string // credentials of the last INVITE: its ACK carries them too (RFC 3261 §22.1)

	invite  *serverTx // inbound, not answered
	head    []byte    // fields of every response to it
	record  []byte    // its Record-Route fields
	unacked *unacked
	offered *reoffer // an offer of the other side, not answered

	reliable *reliable // inbound, of a caller who knows 100rel
	rang     int       // inbound: status of the last provisional response
	sdp      []byte    // our last offer or answer that counts
	heard    uint64    // digest of the other side's, 0 before
	session  session
	granted  grant // inbound: the session timer its answer gives

	call     *placed // outgoing, not answered
	reinvite *clientTx
	waiting  func(*message, error) // who waits for the answer to our offer
	ack      []byte                // of the last INVITE of ours, for repeated 2xx
	bye      *Reason               // to be sent when the ACK is in

	referrals    int               // REFERs of the other side so far
	subscription *subscription     // of the last one accepted
	progress     func(int, string) // who is told how a transfer of ours goes
}

type legState uint8

const (
	legRinging   legState = iota
	legCanceling          // outgoing: given up, its INVITE is not finished
	legAnswered           // inbound: no ACK yet; outgoing: Ack not called yet
	legConfirmed
	legEnding // our BYE is on its way
	legOver
)

// path is where requests inside a dialog go (RFC 3261 §12.1).
type path struct {
	target string   // remote target URI
	routes []string // route set, each a name-addr
}

// unacked is a 2xx of ours that waits for its ACK.
type unacked struct {
	seq      uint32
	response []byte
	flow     flow
	late     bool // it carried an offer
	interval time.Duration
	end      time.Duration
}

// CallID is the dialog's Call-ID.
func (l *Leg) CallID() string { return l.callID }

// Gone is closed when the dialog has nothing more to say: what we asked for last, a BYE or a CANCEL, is answered or given up.
// That may be later than the last event.
func (l *Leg) Gone() <-chan struct{} { return l.gone }

// emit tells an event, or keeps it until somebody listens.
func (l *Leg) emit(e Event) {
	if !l.over.Load() {
		l.tell(e)
	}
}

func (l *Leg) tell(e Event) {
	if l.on == nil {
		l.backlog = append(l.backlog, e)
		return
	}
	l.shard.guarded(func() { l.on(e) })
}

func (l *Leg) listen(on func(Event)) {
	l.on = on
	for _, e := range l.backlog {
		l.shard.guarded(func() { on(e) })
	}
	l.backlog = nil
}

// finish tells the last event. Who is told finds the leg over.
func (l *Leg) finish(e Event) {
	if !l.over.Swap(true) {
		l.tell(e)
	}
	l.uncount()
	if l.waiting != nil {
		l.waiting(nil, ErrOver)
		l.waiting = nil
	}
	l.patience()
}

// patience bounds how long a re-INVITE nobody waits for is kept.
func (l *Leg) patience() {
	if tx, s := l.reinvite, l.shard; tx != nil && tx.state == trying && s.clients[tx.key] == tx {
		tx.end = s.now + patience
		s.timers.set(&tx.timer, tx.end)
	}
}

// end tells the last event and forgets the dialog.
func (l *Leg) end(e Event) {
	s := l.shard
	l.finish(e)
	l.bury()
	l.unacked = nil
	s.timers.stop(&l.timer)
	l.session.stop(s)
	l.reliable.stop(s)
	delete(s.legs, l.key)
	if l.offered != nil {
		l.offered.respond(l, 487, nil) // RFC 3261 §15.1.2
	}
}

// bury is the end of the dialog.
func (l *Leg) bury() {
	if l.state != legOver {
		l.state = legOver
		close(l.gone)
	}
}

func (l *Leg) uncount() {
	if l.counted.Swap(false) {
		l.shard.srv.calls.Add(-1)
	}
}

func (l *Leg) post(do func()) { l.shard.post(func(*shard) { do() }) }

func (l *Leg) perform(do func()) { l.shard.perform(func(*shard) { do() }) }

// expire is the leg's one deadline: which, follows from its state.
func (l *Leg) expire(s *shard) {
	switch {
	case l.unacked != nil:
		l.repeatAnswer()
	case l.state == legRinging && !l.inbound:
		l.giveUp(Failed{Status: 408, Reason: "nobody answered"})
	case l.state == legRinging && l.rang > 0:
		l.ring(l.rang, nil)
	case l.state == legCanceling:
		l.abandon()
	}
}

// awaitAck repeats a 2xx until its ACK comes (RFC 3261 §13.3.1.4).
func (l *Leg) awaitAck(u *unacked) {
	now := l.shard.now
	l.unacked = u
	u.interval, u.end = t1, now+patience
	l.shard.timers.set(&l.timer, now+t1)
}

func (l *Leg) repeatAnswer() {
	u, s := l.unacked, l.shard
	if s.now >= u.end {
		l.hangUp(Reason{})
		l.finish(Lost{Why: "the answer was never acknowledged"})
		return
	}
	s.stats.retransmissions.Add(1)
	s.wire.send(u.flow, u.response)
	u.interval = min(2*u.interval, t2)
	s.timers.set(&l.timer, min(s.now+u.interval, u.end))
}

// acked handles the ACK of a 2xx.
func (l *Leg) acked(m *message) {
	u := l.unacked
	if u == nil || m.cseq != u.seq {
		return
	}
	l.shard.timers.stop(&l.timer)
	l.unacked = nil
	if l.state == legAnswered {
		l.state = legConfirmed
	} else if !u.late {
		return // of a re-INVITE
	}
	var sdp []byte
	if u.late && m.body != "" {
		sdp = []byte(m.body)
		l.hear(m.body)
	}
	l.emit(Acked{SDP: sdp})
	if l.bye != nil {
		l.hangUp(*l.bye)
	}
}

// fromPeer: the From tag must be the other side's (RFC 3261 §12.2.2).
func (l *Leg) fromPeer(m *message) bool {
	if l.remoteTag == "" && l.call != nil {
		return l.call.early[m.from.tag] != nil
	}
	return m.from.tag == l.remoteTag || l.remoteTag == ""
}

// hop is where the next request goes. A phone is reached the way its own
// requests came. Otherwise it is the first route or the remote target; names
// are not looked up, and private addresses not believed from a public peer:
// there the peer's own address is the best we know.
func (l *Leg) hop(p path) flow {
	if l.symmetric {
		return l.flow
	}
	next := p.target
	if len(p.routes) > 0 {
		if a, err := readAddress(p.routes[0]); err == nil {
			next = a.uri
		}
	}
	u, err := ParseURI(next)
	addr, ok := literal(u)
	kind := u.transport()
	if err != nil || !ok || kind.web() || addr.Addr().IsPrivate() && !isLocal(l.flow.addr.Addr()) {
		return l.shard.srv.again(l.flow)
	}
	sameHost := addr.Addr() == l.flow.addr.Addr()
	if c := l.flow.conn; c != nil && c.open() && (sameHost && (kind == "" || kind == c.key.kind) || c.key.kind.secure() && kind != TLS) {
		return l.flow
	}
	name := ""
	if sameHost && l.flow.conn != nil {
		name = l.flow.conn.key.name
	}
	return l.shard.srv.to(kind, addr, name)
}
