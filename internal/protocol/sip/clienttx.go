package sip

import (
	"strconv"
	"time"
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
	plainTx txKind = iota
	inviteTx
	cancelTx
)

func kindOf(method string) txKind {
	switch method {
	case "INVITE":
		return inviteTx
	case "CANCEL":
		return cancelTx
	}
	return plainTx
}

// clientTx is a client transaction (RFC 3261 §17.1, RFC 6026).
type clientTx struct {
	timer
	key      clientKey
	flow     flow
	request  []byte // retransmitted until a response arrives
	ack      []byte // ACK of a failed INVITE
	heard    bool   // a provisional response arrived
	state    txState
	interval time.Duration
	end      time.Duration
	on       reply
}

// responseFunc receives each response to a request. Without a response m is nil and the status stands for the cause:
// 408 for a timeout, 503 if it could not be sent.
type reply func(m *message, status int)

// startClientTx sends a request and waits for its responses. request is kept.
func (s *shard) start(key clientKey, f flow, request []byte, on reply) *clientTx {
	tx := &clientTx{key: key, flow: f, request: request, on: on}
	tx.owner = tx
	s.clients[key] = tx
	s.watch(tx)
	tx.end = s.now + patience // timers B and F
	tx.interval = t1          // timers A and E
	if f.reliable() {
		tx.interval = patience
	}
	s.timers.set(&tx.timer, s.now+tx.interval)
	s.wire.send(f, request)
	return tx
}

func (tx *clientTx) expire(s *shard) {
	if tx.state == completed {
		s.dropClient(tx)
		return
	}
	if s.now >= tx.end {
		s.dropClient(tx)
		if !tx.heard {
			s.srv.dead.note(tx.flow.transport(), tx.flow.addr, s.now)
		}
		tx.on(nil, 408)
		return
	}
	if !tx.flow.reliable() {
		s.stats.retransmissions.Add(1)
		s.wire.send(tx.flow, tx.request)
	}
	tx.interval *= 2
	if tx.key.kind != inviteTx {
		tx.interval = min(tx.interval, t2)
	}
	if tx.heard {
		tx.interval = t2 // RFC 3261 §17.1.2.2: timer E in Proceeding
	}
	s.timers.set(&tx.timer, min(s.now+tx.interval, tx.end))
}

// receive advances the state machine by a response.
func (tx *clientTx) receive(s *shard, m *message) {
	switch {
	case tx.state == completed:
		if tx.ack != nil {
			s.wire.send(tx.flow, tx.ack) // RFC 3261 §17.1.1.2: the ACK was lost
		}
	case m.status < 200:
		tx.provisional(s)
		tx.on(m, m.status)
	case tx.key.kind == inviteTx && m.status < 300:
		s.dropClient(tx) // further 2xx go to the dialog
		tx.on(m, m.status)
	default:
		tx.final(s, m)
		tx.on(m, m.status)
	}
}

func (tx *clientTx) provisional(s *shard) {
	tx.heard = true
	if tx.key.kind == inviteTx {
		s.timers.stop(&tx.timer) // RFC 3261 §17.1.1.2: wait without retransmitting
	}
}

// final keeps the transaction to absorb retransmitted responses. Timer D is 32 s, timer K 5 s; both are zero over
// TCP.
func (tx *clientTx) final(s *shard, m *message) {
	linger := t4
	if tx.key.kind == inviteTx {
		tx.ack = derive(nil, tx.request, "ACK", m.to.value)
		s.wire.send(tx.flow, tx.ack)
		linger = patience
	}
	if tx.flow.reliable() {
		s.dropClient(tx)
		return
	}
	tx.state, tx.request = completed, nil
	s.timers.set(&tx.timer, s.now+linger)
}

// connectionLost ends the transaction because its connection is closed.
func (tx *clientTx) lost(s *shard) {
	s.dropClient(tx)
	if tx.state != completed {
		tx.on(nil, 503)
	}
}

func (s *shard) dropClient(tx *clientTx) {
	s.timers.stop(&tx.timer)
	delete(s.clients, tx.key)
	if c := tx.flow.conn; c != nil {
		delete(s.waiting[c], tx)
		if len(s.waiting[c]) == 0 {
			delete(s.waiting, c)
		}
	}
}

// trackConnTx records which transactions fail if a connection closes.
func (s *shard) watch(tx *clientTx) {
	c := tx.flow.conn
	if c == nil {
		return
	}
	if s.waiting[c] == nil {
		s.waiting[c] = make(map[*clientTx]struct{})
	}
	s.waiting[c][tx] = struct{}{}
}

// appendBranch writes the value of our branch parameter.
func appendBranch(b []byte, branch uint64) []byte {
	return appendHex(append(b, cookie...), branch)
}

func appendHex(b []byte, n uint64) []byte {
	const digits = "0123456789abcdef"
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, digits[n>>shift&15])
	}
	return b
}

// parseBranch parses a branch written by appendBranch.
func branchOf(s string) (uint64, bool) {
	if len(s) != len(cookie)+16 || s[:len(cookie)] != cookie {
		return 0, false
	}
	n, err := strconv.ParseUint(s[len(cookie):], 16, 64)
	return n, err == nil
}
