package queue

import (
	"context"

	"soniq/db"
)

// A PastOffer is an agent who was rung for a call: what came of it is answered, no_answer, rejected or canceled.
type PastOffer struct {
	AgentID     string
	OfferedAt   db.Time
	RingSeconds int
	Result      string
}

// OffersOf tells who was rung for calls, in order, by the calls.
func (s *Service) OffersOf(ctx context.Context, q db.Querier, org string, calls []string) (map[string][]PastOffer, error) {
	const text = `SELECT o.call_id, o.agent_id, o.offered_at, o.ring_seconds, o.status FROM queue_entries e
		JOIN queue_offers o ON o.org_id = e.org_id AND o.entry_id = e.id AND o.call_id = e.call_id WHERE e.org_id = $1`
	statement, args := db.Where(text, org).In("e.call_id", calls).SQL()
	found := map[string][]PastOffer{}
	err := each(ctx, q, "find offers of calls", statement+` ORDER BY o.id`, args, func(scan func(...any) error) error {
		var call, status string
		var o PastOffer
		err := scan(&call, &o.AgentID, &o.OfferedAt, &o.RingSeconds, &status)
		o.Result = resultOf(status)
		found[call] = append(found[call], o)
		return err
	})
	return found, err
}

// Waited is how many seconds the caller of a call waited in queues so far, all visits together.
func (s *Service) Waited(ctx context.Context, q db.Querier, org, call string) (sum int, err error) {
	all, err := entries(ctx, q, "find visits", entryColumns+` AND call_id = $2`, []any{org, call})
	for _, e := range all {
		sum += e.waited(db.At(s.Now()))
	}
	return sum, err
}

// resultOf is what came of an offer, as call detail records say it.
func resultOf(status string) string {
	switch status {
	case OfferConnected, OfferCompleted:
		return "answered"
	case OfferNoAnswer, OfferRejected:
		return status
	}
	return "canceled"
}

// Names tells the names of queues, those that were removed too, by their ids.
func (s *Service) Names(ctx context.Context, q db.Querier, org string, ids []string) (map[string]string, error) {
	const text = `SELECT id, name FROM queues WHERE org_id = $1`
	statement, args := db.Where(text, org).In("id", ids).SQL()
	found := map[string]string{}
	err := each(ctx, q, "find names of queues", statement, args, func(scan func(...any) error) error {
		var id, name string
		err := scan(&id, &name)
		found[id] = name
		return err
	})
	return found, err
}
