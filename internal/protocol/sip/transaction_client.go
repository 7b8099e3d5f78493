package sip

import (
	"time"

	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/sip/transport"
)

// Client transactions (RFC 3261 §17.1).

// clientKey identifies a client transaction: our branch and the kind of request, since a CANCEL shares the branch of
// its INVITE (RFC 3261 §17.1.3).
type clientKey struct {
	branch uint64
	kind   txKind
}

type txKind uint8

const (
	nonInviteTx txKind = iota
	inviteTx
	cancelTx
)

func txKindOf(method string) txKind {
	switch method {
	case "INVITE":
		return inviteTx
	case "CANCEL":
		return cancelTx
	}
	return nonInviteTx
}

// clientTx is a client transaction (RFC 3261 §17.1, RFC 6026).
type clientTx struct {
	timer
	key            clientKey
	flow           transport.Flow
	request        []byte // retransmitted until a response arrives
	failureACK     []byte // ACK of a failed INVITE
	gotProvisional bool   // a provisional response arrived
	state          txState
	interval       time.Duration
	deadline       time.Duration
	onResponse     responseFunc
}

// responseFunc receives each response to a request. Without a response m is nil and the status stands for the cause:
// 408 for a timeout, 503 if it could not be sent.
type responseFunc func(m *received, status int)

// startClientTx sends a request and waits for its responses. request is kept.
func (s *shard) startClientTx(key clientKey, f transport.Flow, request []byte, on responseFunc) *clientTx {
	tx := &clientTx{key: key, flow: f, request: request, onResponse: on}
	tx.owner = tx
	s.clientTxs[key] = tx
	s.trackConnTx(tx)
	tx.deadline = s.now + txTimeout // timers B and F
	tx.interval = t1                // timers A and E
	if f.Reliable() {
		tx.interval = txTimeout
	}
	s.timers.set(&tx.timer, s.now+tx.interval)
	s.sender.Send(f, request)
	return tx
}

func (tx *clientTx) expire(s *shard) {
	if tx.state == txCompleted {
		s.dropClient(tx)
		return
	}
	if s.now >= tx.deadline {
		s.dropClient(tx)
		if !tx.gotProvisional {
			s.srv.locator.MarkFailed(tx.flow.Transport(), tx.flow.Addr, s.now)
		}
		tx.onResponse(nil, 408)
		return
	}
	if !tx.flow.Reliable() {
		s.stats.retransmissions.Add(1)
		s.sender.Send(tx.flow, tx.request)
	}
	tx.interval *= 2
	if tx.key.kind != inviteTx {
		tx.interval = min(tx.interval, t2)
	}
	if tx.gotProvisional {
		tx.interval = t2 // RFC 3261 §17.1.2.2: timer E in Proceeding
	}
	s.timers.set(&tx.timer, min(s.now+tx.interval, tx.deadline))
}

// receive advances the state machine by a response.
func (tx *clientTx) receive(s *shard, m *received) {
	switch {
	case tx.state == txCompleted:
		if tx.failureACK != nil && m.Status >= 200 {
			s.sender.Send(tx.flow, tx.failureACK) // RFC 3261 §17.1.1.2: the ACK was lost
		}
	case m.Status < 200:
		tx.provisional(s)
		tx.onResponse(m, m.Status)
	case tx.key.kind == inviteTx && m.Status < 300:
		s.dropClient(tx) // further 2xx go to the dialog
		tx.onResponse(m, m.Status)
	default:
		tx.final(s, m)
		tx.onResponse(m, m.Status)
	}
}

func (tx *clientTx) provisional(s *shard) {
	tx.gotProvisional = true
	if tx.key.kind == inviteTx {
		s.timers.stop(&tx.timer) // RFC 3261 §17.1.1.2: wait without retransmitting
	}
}

// final keeps the transaction to absorb retransmitted responses. Timer D is 32 s, timer K 5 s; both are zero over
// TCP.
func (tx *clientTx) final(s *shard, m *received) {
	linger := t4
	if tx.key.kind == inviteTx {
		tx.failureACK = sipmsg.DeriveRequest(nil, tx.request, "ACK", m.To.Value)
		s.sender.Send(tx.flow, tx.failureACK)
		linger = txTimeout
	}
	if tx.flow.Reliable() {
		s.dropClient(tx)
		return
	}
	tx.state, tx.request = txCompleted, nil
	s.timers.set(&tx.timer, s.now+linger)
}

// connectionLost ends the transaction because its connection is closed.
func (tx *clientTx) connectionLost(s *shard) {
	s.dropClient(tx)
	if tx.state != txCompleted {
		tx.onResponse(nil, 503)
	}
}

func (s *shard) dropClient(tx *clientTx) {
	s.timers.stop(&tx.timer)
	delete(s.clientTxs, tx.key)
	if c := tx.flow.Conn; c != nil {
		delete(s.txsByConn[c], tx)
		if len(s.txsByConn[c]) == 0 {
			delete(s.txsByConn, c)
		}
	}
}

// trackConnTx records which transactions fail if a connection closes.
func (s *shard) trackConnTx(tx *clientTx) {
	c := tx.flow.Conn
	if c == nil {
		return
	}
	if s.txsByConn[c] == nil {
		s.txsByConn[c] = make(map[*clientTx]struct{})
	}
	s.txsByConn[c][tx] = struct{}{}
}
