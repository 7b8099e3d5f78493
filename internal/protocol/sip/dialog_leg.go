package sip

import (
	"errors"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"soniq/internal/protocol/sip/digest"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/sip/transport"
)

// Leg: state of a dialog, delivery of its events, ACK of a 2xx, next hop.

// Errors of legs and servers.
var (
	ErrLegEnded = errors.New("sip: the leg has ended")
	ErrClosed   = errors.New("sip: the server is closed")
	// ErrOfferPending is returned if an earlier Reinvite is not answered yet.
	ErrOfferPending = errors.New("sip: an earlier offer is not answered yet")
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
	shard         *shard
	callID        string
	ended         atomic.Bool // no further event
	countedAsCall atomic.Bool // counts in Stats.Calls
	done          chan struct{}

	// The fields below belong to the goroutine that holds the shard.
	timer
	onEvent      func(Event)
	eventBacklog []Event // events before onEvent is set
	key          txKey

	state             legState
	inbound           bool
	symmetric         bool // a phone: requests go to the source of its own requests
	lateOffer         bool // inbound: the INVITE had no offer
	offerAnswered     bool // inbound: the first offer is answered
	peerAllowsUpdate  bool // the peer allows UPDATE
	updatePending     bool // our UPDATE with an offer is not answered
	reinviteWithdrawn bool // the caller of Reinvite no longer waits

	local, remote string // From and To values of our requests, with tags
	localTag      string
	remoteTag     string
	localSeq      uint32
	remoteSeq     uint32
	inviteSeq     uint32 // of the INVITE of an inbound leg
	ackSeq        uint32
	route         dialogRoute
	flow          transport.Flow // flow of the peer's requests
	account       string         // a phone: id of its account; empty if unknown
	trunk         string         // id of the trunk; empty for phones, or if unknown
	noted         bool           // a request from another source was logged
	refused       bool           // an offer or refresh from another source was refused
	contact       string         // our Contact value
	digestClient  digest.Client
	inviteAuth    string // credentials of the last INVITE; its ACK repeats them (RFC 3261 §22.1)

	inviteServerTx  *serverTx // inbound, not answered
	responseHead    []byte    // fields of every response to it
	responseHeader  []byte    // further fields of responses 101 to 299
	recordRoute     []byte    // its Record-Route fields
	unacked         *unackedAnswer
	pendingReinvite *pendingReinvite // unanswered offer of the peer

	reliable        *reliableProvisional // inbound with 100rel; nil if the caller does not support it
	lastProvisional int                  // inbound: status of the last provisional response
	localSDP        []byte               // our last offer or answer in effect
	peerSDPHash     uint64               // hash of the peer's SDP, 0 before the first
	sessionTimer    sessionTimer
	sessionGrant    sessionGrant // inbound: session timer granted in the answer

	outgoingInvite  *outgoingInvite // outgoing, not answered
	reinviteTx      *clientTx
	onOfferAnswered func(*received, error) // receives the answer to our pending offer
	lastACK         []byte                 // ACK of our last INVITE, for repeated 2xx
	deferredBye     *Reason                // BYE to be sent once the ACK has arrived

	referCount         int                // number of REFERs received
	referSubscription  *referSubscription // subscription of the last accepted REFER
	onTransferProgress func(int, string)  // receives the progress of our own REFER
}

type legState uint8

const (
	legRinging   legState = iota
	legCanceling          // outgoing: canceled, its INVITE is not finished
	legAnswered           // inbound: no ACK yet; outgoing: Ack not called yet
	legConfirmed
	legEnding // our BYE is not answered
	legTerminated
)

// dialogRoute holds the remote target and route set of a dialog (RFC 3261 §12.1).
type dialogRoute struct {
	target string   // remote target URI
	routes []string // route set, each a name-addr
}

// unackedAnswer is a 2xx that waits for its ACK.
type unackedAnswer struct {
	seq       uint32
	response  []byte
	flow      transport.Flow
	lateOffer bool // it carried an offer
	interval  time.Duration
	deadline  time.Duration
}

// CallID returns the dialog's Call-ID.
func (l *Leg) CallID() string { return l.callID }

// Done returns a channel that is closed when the dialog sends and expects nothing more: our last BYE or CANCEL was
// answered or timed out. That may be later than the last event.
func (l *Leg) Done() <-chan struct{} { return l.done }

// emit delivers an event, or queues it until a callback is set.
func (l *Leg) emit(e Event) {
	if !l.ended.Load() {
		l.deliverEvent(e)
	}
}

func (l *Leg) deliverEvent(e Event) {
	if l.onEvent == nil {
		l.eventBacklog = append(l.eventBacklog, e)
		return
	}
	l.shard.runRecovered(func() { l.onEvent(e) })
}

func (l *Leg) setListener(on func(Event)) {
	l.onEvent = on
	for _, e := range l.eventBacklog {
		l.shard.runRecovered(func() { on(e) })
	}
	l.eventBacklog = nil
}

// emitFinal delivers the last event. The callback already finds the leg ended.
func (l *Leg) emitFinal(e Event) {
	if !l.ended.Swap(true) {
		l.deliverEvent(e)
	}
	l.uncountCall()
	if l.onOfferAnswered != nil {
		l.onOfferAnswered(nil, ErrLegEnded)
		l.onOfferAnswered = nil
	}
	l.limitPendingReinvite()
}

// limitPendingReinvite bounds the lifetime of a re-INVITE if no caller waits for its answer.
func (l *Leg) limitPendingReinvite() {
	if tx, s := l.reinviteTx, l.shard; tx != nil && tx.state == txTrying && s.clientTxs[tx.key] == tx {
		tx.deadline = s.now + txTimeout
		s.timers.set(&tx.timer, tx.deadline)
	}
}

// terminate delivers the last event and removes the dialog.
func (l *Leg) terminate(e Event) {
	s := l.shard
	l.emitFinal(e)
	l.markTerminated()
	l.unacked = nil
	s.timers.stop(&l.timer)
	l.sessionTimer.stop(s)
	l.reliable.stop(s)
	delete(s.legs, l.key)
	if l.pendingReinvite != nil {
		l.pendingReinvite.respond(l, 487, nil) // RFC 3261 §15.1.2
	}
}

// markTerminated sets the final state and closes the channel of Done.
func (l *Leg) markTerminated() {
	if l.state != legTerminated {
		l.state = legTerminated
		close(l.done)
	}
}

func (l *Leg) uncountCall() {
	if l.countedAsCall.Swap(false) {
		l.shard.srv.calls.Add(-1)
	}
}

func (l *Leg) enqueue(do func()) { l.shard.enqueue(func(*shard) { do() }) }

func (l *Leg) runOrEnqueue(do func()) { l.shard.runOrEnqueue(func(*shard) { do() }) }

// expire handles the leg's single timer. The state determines its meaning.
func (l *Leg) expire(s *shard) {
	switch {
	case l.unacked != nil:
		l.retransmitAnswer()
	case l.state == legRinging && !l.inbound:
		l.abortRinging(Failed{Status: 408, Reason: "nobody answered"})
	case l.state == legRinging && l.lastProvisional > 0:
		l.sendProvisional(l.lastProvisional, nil)
	case l.state == legCanceling:
		l.cancelTimedOut()
	}
}

// awaitAck repeats a 2xx until its ACK arrives (RFC 3261 §13.3.1.4).
func (l *Leg) awaitAck(u *unackedAnswer) {
	now := l.shard.now
	l.unacked = u
	u.interval, u.deadline = t1, now+txTimeout
	l.shard.timers.set(&l.timer, now+t1)
}

func (l *Leg) retransmitAnswer() {
	u, s := l.unacked, l.shard
	if s.now >= u.deadline {
		l.hangUp(Reason{})
		l.emitFinal(Lost{Why: "the answer was never acknowledged"})
		return
	}
	s.stats.retransmissions.Add(1)
	s.sender.Send(u.flow, u.response)
	u.interval = min(2*u.interval, t2)
	s.timers.set(&l.timer, min(s.now+u.interval, u.deadline))
}

// handleACK handles the ACK of a 2xx.
func (l *Leg) handleACK(m *received) {
	u := l.unacked
	if u == nil || m.CSeq != u.seq {
		return
	}
	l.shard.timers.stop(&l.timer)
	l.unacked = nil
	if l.state == legAnswered {
		l.state = legConfirmed
	} else if !u.lateOffer {
		return // of a re-INVITE
	}
	var sdp []byte
	if answer := m.SDP(); u.lateOffer && answer != "" {
		sdp = []byte(answer)
		l.notePeerSDP(answer)
	}
	l.emit(Acked{SDP: sdp, Unanswered: u.lateOffer && sdp == nil})
	if l.deferredBye != nil {
		l.hangUp(*l.deferredBye)
	}
}

// isFromPeer reports whether the From tag is the peer's (RFC 3261 §12.2.2).
func (l *Leg) isFromPeer(m *received) bool {
	if l.remoteTag == "" && l.outgoingInvite != nil {
		return l.outgoingInvite.earlyDialogs[m.From.Tag] != nil
	}
	return m.From.Tag == l.remoteTag || l.remoteTag == ""
}

// nextFlow returns the flow of the next request. A phone is reached by the flow of its own requests. Otherwise the
// destination is the first route or the remote target. Names are not resolved. An address that Config.Targets refuses
// is not used, and a private address is not trusted from a public peer. In these cases the peer's own address is used.
func (l *Leg) nextFlow(p dialogRoute) transport.Flow {
	if l.symmetric {
		return l.flow
	}
	next := p.target
	if len(p.routes) > 0 {
		if a, err := sipmsg.ReadAddress(p.routes[0]); err == nil {
			next = a.URI
		}
	}
	u, err := sipmsg.ParseURI(next)
	addr, ok := sipmsg.LiteralAddr(u)
	kind := u.Transport()
	if err != nil || !ok || kind.IsWebSocket() || !reachableFrom(addr.Addr(), l.flow.Addr.Addr()) ||
		!l.shard.srv.maySendTo(addr, l.flow.Addr) {
		return l.shard.srv.layer.Reconnected(l.flow)
	}
	sameHost := addr.Addr() == l.flow.Addr.Addr()
	fits := func(t sipmsg.Transport) bool {
		return sameHost && (kind == "" || kind == t) || t.IsEncrypted() && kind != sipmsg.TLS
	}
	if c := l.flow.Conn; c != nil && c.IsOpen() && fits(c.Key.Transport) {
		return l.flow
	}
	name := ""
	if sameHost && l.flow.Conn != nil {
		name = l.flow.Conn.Key.Name
	}
	return l.shard.srv.layer.FlowTo(kind, addr, name)
}

// reachableFrom reports whether an address that a peer named can be its own. That of no host, or of this machine, is none of another
// machine, and a private address is not trusted from a public peer.
func reachableFrom(named, peer netip.Addr) bool {
	switch {
	case named.IsUnspecified():
		return false
	case named.IsLoopback():
		return peer.IsLoopback()
	}
	return !named.IsPrivate() || isPrivateAddr(peer)
}
