package sip

import "time"

// Server transactions (RFC 3261 §17.2).

// txKey identifies a server transaction or a dialog. It is a keyed hash of the values that RFC 3261 §17.2.3
// compares, so that the table holds no strings.
type txKey [2]uint64

type txState uint8

const (
	trying txState = iota // no final response yet
	completed
	confirmed // the ACK of a failure arrived
	accepted  // a 2xx was sent (RFC 6026 §7.1)
)

// serverTx is a server transaction (RFC 3261 §17.2, RFC 6026). Once finished, it holds little more than the last
// response.
type serverTx struct {
	timer
	key      txKey
	invite   bool
	state    txState
	flow     flow
	last     []byte // repeated when the request is retransmitted
	interval time.Duration
	end      time.Duration
	leg      *Leg   // of an INVITE without final response
	mark     uint64 // admission key of the INVITE
}

// newServerTx creates the transaction of a request.
func (s *shard) serve(m *message, key txKey) *serverTx {
	tx := &serverTx{key: key, flow: m.replyFlow(), invite: m.method == "INVITE"}
	tx.owner = tx
	s.servers[key] = tx
	return tx
}

// setResponseDeadline drops the transaction if no final response is sent within 64*T1. The client has timed out by
// then (RFC 3261 §17.1.2.2, timer F).
func (tx *serverTx) limit(s *shard) { s.timers.set(&tx.timer, s.now+patience) }

// retransmit handles a retransmission of the request.
func (tx *serverTx) again(s *shard) {
	s.stats.retransmissions.Add(1)
	if tx.last != nil {
		s.wire.send(tx.flow, tx.last)
	}
}

// respond sends a response and advances the state machine. b is copied.
func (tx *serverTx) respond(s *shard, status int, b []byte) {
	if tx.state != trying || s.servers[tx.key] != tx {
		return
	}
	s.wire.send(tx.flow, b)
	if status >= 200 && status < 300 && tx.invite {
		// RFC 6026 §7.1: absorb retransmissions; the dialog repeats the 2xx.
		tx.state, tx.last, tx.leg = accepted, nil, nil
		s.timers.set(&tx.timer, s.now+patience)
		return
	}
	tx.last = append(tx.last[:0:0], b...)
	if status >= 200 {
		tx.complete(s)
	}
}

func (tx *serverTx) complete(s *shard) {
	tx.state, tx.leg = completed, nil
	tx.end = s.now + patience // timers H and J
	switch {
	case !tx.invite && tx.flow.reliable():
		s.dropServer(tx) // timer J is zero
	case !tx.invite || tx.flow.reliable():
		s.timers.set(&tx.timer, tx.end)
	default:
		tx.interval = t1 // timer G
		s.timers.set(&tx.timer, s.now+t1)
	}
}

// handleACK handles the ACK of a failure (RFC 3261 §17.2.1).
func (tx *serverTx) acked(s *shard) {
	if tx.state != completed {
		return
	}
	tx.state, tx.last = confirmed, nil
	if tx.flow.reliable() {
		s.dropServer(tx) // timer I is zero
		return
	}
	tx.end = s.now + t4
	s.timers.set(&tx.timer, tx.end)
}

func (tx *serverTx) expire(s *shard) {
	if tx.state != completed || s.now >= tx.end {
		s.dropServer(tx)
		return
	}
	s.stats.retransmissions.Add(1)
	s.wire.send(tx.flow, tx.last)
	tx.interval = min(2*tx.interval, t2)
	s.timers.set(&tx.timer, min(s.now+tx.interval, tx.end))
}

func (s *shard) dropServer(tx *serverTx) {
	s.timers.stop(&tx.timer)
	delete(s.servers, tx.key)
	if tx.mark != 0 {
		s.forgotten = append(s.forgotten, tx.mark)
	}
}
