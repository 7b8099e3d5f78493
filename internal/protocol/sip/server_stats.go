package sip

import (
	"context"
	"errors"
	"sync/atomic"
)

// Counters and gauges for metrics.

// Stats holds counters since start, and gauges, for metrics.
type Stats struct {
	Received        uint64 // messages received
	Sent            uint64 // messages sent, retransmissions included
	Retransmissions uint64 // ours, and those of peers that were absorbed
	ParseErrors     uint64 // messages answered 400 or dropped as malformed
	Rejected        uint64 // INVITEs refused with 503 by the limits
	Dropped         uint64 // messages dropped: full queue, flood, banned source
	Challenges      uint64 // 401 and 407 sent
	AuthFailures    uint64 // wrong user name or password
	Panics          uint64 // recovered; each one is a defect

	Invites            uint64 // new inbound INVITEs accepted for processing
	Dialogs            int64  // legs alive
	Calls              int64  // inbound calls in progress
	ServerTransactions int64  // finished ones that absorb retransmissions included
	ClientTransactions int64
	Connections        int64 // TCP, TLS and WebSocket
	Bans               int64 // sources banned now or recently
}

type counters struct {
	retransmissions, parseErrors, rejected    atomic.Uint64
	challenges, authFailures, panics, invites atomic.Uint64
}

// shardCounts publishes the sizes of a shard's tables to other goroutines.
type shardCounts struct{ serverTxs, clientTxs, legs atomic.Int64 }

// Stats returns the counters and gauges.
func (s *Server) Stats() Stats {
	c := &s.stats
	var servers, clients, legs int64
	for _, sh := range s.shards {
		servers, clients, legs = servers+sh.counts.serverTxs.Load(), clients+sh.counts.clientTxs.Load(), legs+sh.counts.legs.Load()
	}
	return Stats{
		Received: s.layer.Stats.Received.Load(), Sent: s.layer.Stats.Sent.Load(), Retransmissions: c.retransmissions.Load(),
		ParseErrors: c.parseErrors.Load(), Rejected: c.rejected.Load(), Dropped: s.layer.Stats.Dropped.Load(),
		Challenges: c.challenges.Load(), AuthFailures: c.authFailures.Load(), Panics: c.panics.Load(),
		Invites: c.invites.Load(), Dialogs: legs, Calls: s.calls.Load(),
		ServerTransactions: servers, ClientTransactions: clients,
		Connections: s.layer.OpenCount(), Bans: s.guard.BanCount(),
	}
}

// Alive returns nil if every shard runs a task before the context ends.
func (s *Server) Alive(ctx context.Context) error {
	done := make(chan struct{}, len(s.shards))
	for _, sh := range s.shards {
		if !sh.enqueue(func(*shard) { done <- struct{}{} }) {
			return errors.New("SIP is closed")
		}
	}
	for range s.shards {
		select {
		case <-done:
		case <-ctx.Done():
			return errors.New("SIP does not handle messages")
		}
	}
	return nil
}
