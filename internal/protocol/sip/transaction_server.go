package sip

import (
	"time"

	"soniq/internal/protocol/sip/transport"
)

// Server transactions (RFC 3261 §17.2).

// txKey identifies a server transaction or a dialog. It is a keyed hash of the values that RFC 3261 §17.2.3
// compares, so that the table holds no strings.
type txKey [2]uint64

type txState uint8

const (
	txTrying txState = iota // no final response yet
	txCompleted
	txConfirmed // the ACK of a failure arrived
	txAccepted  // a 2xx was sent (RFC 6026 §7.1)
)

// serverTx is a server transaction (RFC 3261 §17.2, RFC 6026). Once finished, it holds little more than the last
// response.
type serverTx struct {
	timer
	key          txKey
	invite       bool
	state        txState
	flow         transport.Flow
	lastResponse []byte // repeated when the request is retransmitted
	interval     time.Duration
	deadline     time.Duration
	leg          *Leg   // of an INVITE without final response
	admissionKey uint64 // admission key of the INVITE
}

// newServerTx creates the transaction of a request.
func (s *shard) newServerTx(m *received, key txKey) *serverTx {
	tx := &serverTx{key: key, flow: m.replyFlow(), invite: m.Method == "INVITE"}
	tx.owner = tx
	s.serverTxs[key] = tx
	return tx
}

// setResponseDeadline drops the transaction if no final response is sent within 64*T1. The client has timed out by
// then (RFC 3261 §17.1.2.2, timer F).
func (tx *serverTx) setResponseDeadline(s *shard) { s.timers.set(&tx.timer, s.now+txTimeout) }

// retransmit handles a retransmission of the request.
func (tx *serverTx) retransmit(s *shard) {
	s.stats.retransmissions.Add(1)
	if tx.lastResponse != nil {
		s.sender.Send(tx.flow, tx.lastResponse)
	}
}

// respond sends a response and advances the state machine. b is copied.
func (tx *serverTx) respond(s *shard, status int, b []byte) {
	if tx.state != txTrying || s.serverTxs[tx.key] != tx {
		return
	}
	s.sender.Send(tx.flow, b)
	if status >= 200 && status < 300 && tx.invite {
		// RFC 6026 §7.1: absorb retransmissions; the dialog repeats the 2xx.
		tx.state, tx.lastResponse, tx.leg = txAccepted, nil, nil
		s.timers.set(&tx.timer, s.now+txTimeout)
		return
	}
	tx.lastResponse = append(tx.lastResponse[:0:0], b...)
	if status >= 200 {
		tx.complete(s)
	}
}

func (tx *serverTx) complete(s *shard) {
	tx.state, tx.leg = txCompleted, nil
	tx.deadline = s.now + txTimeout // timers H and J
	switch {
	case !tx.invite && tx.flow.Reliable():
		s.dropServer(tx) // timer J is zero
	case !tx.invite || tx.flow.Reliable():
		s.timers.set(&tx.timer, tx.deadline)
	default:
		tx.interval = t1 // timer G
		s.timers.set(&tx.timer, s.now+t1)
	}
}

// handleACK handles the ACK of a failure (RFC 3261 §17.2.1).
func (tx *serverTx) handleACK(s *shard) {
	if tx.state != txCompleted {
		return
	}
	tx.state, tx.lastResponse = txConfirmed, nil
	if tx.flow.Reliable() {
		s.dropServer(tx) // timer I is zero
		return
	}
	tx.deadline = s.now + t4
	s.timers.set(&tx.timer, tx.deadline)
}

func (tx *serverTx) expire(s *shard) {
	if tx.state != txCompleted || s.now >= tx.deadline {
		s.dropServer(tx)
		return
	}
	s.stats.retransmissions.Add(1)
	s.sender.Send(tx.flow, tx.lastResponse)
	tx.interval = min(2*tx.interval, t2)
	s.timers.set(&tx.timer, min(s.now+tx.interval, tx.deadline))
}

func (s *shard) dropServer(tx *serverTx) {
	s.timers.stop(&tx.timer)
	delete(s.serverTxs, tx.key)
	if tx.admissionKey != 0 {
		s.finishedInvites = append(s.finishedInvites, tx.admissionKey)
	}
}
