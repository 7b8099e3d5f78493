package sip

import (
	"errors"
	"strconv"
	"sync/atomic"
	"time"
)

// Leg: state of a dialog, delivery of its events, ACK of a 2xx, next hop.

// Errors of legs and servers.
var (
	ErrOver   = errors.New("sip: the leg has ended")
	ErrClosed = errors.New("sip: the server is closed")
	// ErrOfferPending is returned if an earlier Reinvite is not answered yet.
	ErrPending = errors.New("sip: an earlier offer is not answered yet")
)

// StatusError reports a failure response to a request inside a dialog or to a request outside dialogs, such as
// REGISTER.
type StatusError struct {
	Method string
	Status int
	Reason string
	Unsent bool // the request could not be sent: the peer is unreachable
}

// Error returns the method, the status and the reason.
func (e *StatusError) Error() string {
	return "sip: " + e.Method + " refused: " + strconv.Itoa(e.Status) + " " + e.Reason
}

// Leg is a dialog with one phone or trunk, or a call attempt that has no dialog yet.
type Leg struct {
	shard   *shard
	callID  string
	over    atomic.Bool // no further event
	counted atomic.Bool // counts in Stats.Calls
	gone    chan struct{}

	// The fields below belong to the goroutine that holds the shard.
	timer
	on      func(Event)
	backlog []Event // events before onEvent is set
	key     txKey

	state     legState
	inbound   bool
	symmetric bool // a phone: requests go to the source of its own requests
	lateOffer bool // inbound: the INVITE had no offer
	agreed    bool // inbound: the first offer is answered
	updates   bool // the peer allows UPDATE
	updating  bool // our UPDATE with an offer is not answered
	withdrawn bool // the caller of Reinvite no longer waits

	local, remote string // From and To values of our requests, with tags
	localTag      string
	remoteTag     string
	localSeq      uint32
	remoteSeq     uint32
	inviteSeq     uint32 // of the INVITE of an inbound leg
	ackSeq        uint32
	path          path
	flow          flow   // flow of the peer's requests
	contact       string // our Contact value
	keys          keyring
	ackAuth       string // credentials of the last INVITE; its ACK repeats them (RFC 3261 §22.1)

	invite  *serverTx // inbound, not answered
	head    []byte    // fields of every response to it
	record  []byte    // its Record-Route fields
	unacked *unacked
	offered *reoffer // unanswered offer of the peer

	reliable *reliable // inbound with 100rel; nil if the caller does not support it
	rang     int       // inbound: status of the last provisional response
	sdp      []byte    // our last offer or answer in effect
	heard    uint64    // hash of the peer's SDP, 0 before the first
	session  session
	granted  grant // inbound: session timer granted in the answer

	call     *placed // outgoing, not answered
	reinvite *clientTx
	waiting  func(*message, error) // receives the answer to our pending offer
	ack      []byte                // ACK of our last INVITE, for repeated 2xx
	bye      *Reason               // BYE to be sent once the ACK has arrived

	referrals    int               // number of REFERs received
	subscription *subscription     // subscription of the last accepted REFER
	progress     func(int, string) // receives the progress of our own REFER
}

type legState uint8

const (
	legRinging   legState = iota
	legCanceling          // outgoing: canceled, its INVITE is not finished
	legAnswered           // inbound: no ACK yet; outgoing: Ack not called yet
	legConfirmed
	legEnding // our BYE is not answered
	legOver
)

// dialogRoute holds the remote target and route set of a dialog (RFC 3261 §12.1).
type path struct {
	target string   // remote target URI
	routes []string // route set, each a name-addr
}

// unackedAnswer is a 2xx that waits for its ACK.
type unacked struct {
	seq      uint32
	response []byte
	flow     flow
	late     bool // it carried an offer
	interval time.Duration
	end      time.Duration
}

// CallID returns the dialog's Call-ID.
func (l *Leg) CallID() string { return l.callID }

// Done returns a channel that is closed when the dialog sends and expects nothing more: our last BYE or CANCEL was
// answered or timed out. That may be later than the last event.
func (l *Leg) Gone() <-chan struct{} { return l.gone }

// emit delivers an event, or queues it until a callback is set.
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

// emitFinal delivers the last event. The callback already finds the leg ended.
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

// limitPendingReinvite bounds the lifetime of a re-INVITE if no caller waits for its answer.
func (l *Leg) patience() {
	if tx, s := l.reinvite, l.shard; tx != nil && tx.state == trying && s.clients[tx.key] == tx {
		tx.end = s.now + patience
		s.timers.set(&tx.timer, tx.end)
	}
}

// terminate delivers the last event and removes the dialog.
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

// markTerminated sets the final state and closes the channel of Done.
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

// expire handles the leg's single timer. The state determines its meaning.
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

// awaitAck repeats a 2xx until its ACK arrives (RFC 3261 §13.3.1.4).
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

// handleACK handles the ACK of a 2xx.
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

// isFromPeer reports whether the From tag is the peer's (RFC 3261 §12.2.2).
func (l *Leg) fromPeer(m *message) bool {
	if l.remoteTag == "" && l.call != nil {
		return l.call.early[m.from.tag] != nil
	}
	return m.from.tag == l.remoteTag || l.remoteTag == ""
}

// nextFlow returns the flow of the next request. A phone is reached by the flow of its own requests. Otherwise the
// destination is the first route or the remote target. Names are not resolved, and a private address is not trusted
// from a public peer: in both cases the peer's own address is used.
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
