package queue

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// PastOffer is one agent rung for a call. Result is answered, no_answer, rejected or canceled.
type PastOffer struct {
	AgentID     string
	OfferedAt   db.Time
	RingSeconds int
	Result      string
	WrapUp      int // wrap-up time in seconds; 0 while it lasts
}

// OffersOfCalls returns the offers of calls, by call id, in the order in which the agents rang.
func (s *Service) OffersOfCalls(ctx context.Context, q db.Querier, org string, calls []string) (map[string][]PastOffer, error) {
	const text = `SELECT o.call_id, o.agent_id, o.offered_at, o.ring_seconds, o.status, o.ended_at, o.wrapped_at FROM queue_entries e
		JOIN queue_offers o ON o.org_id = e.org_id AND o.entry_id = e.id AND o.call_id = e.call_id WHERE e.org_id = $1`
	statement, args := db.Where(text, org).In("e.call_id", calls).SQL()
	found := map[string][]PastOffer{}
	err := db.ForEach(ctx, q, "find offers of calls", statement+` ORDER BY o.id`, args, func(scan func(...any) error) error {
		var call, status string
		var o PastOffer
		var ended, wrapped db.Time
		err := scan(&call, &o.AgentID, &o.OfferedAt, &o.RingSeconds, &status, &ended, &wrapped)
		o.Result = offerResult(status)
		if !wrapped.IsZero() && !wrapped.After(s.cfg.Clock.Now()) {
			o.WrapUp = int(wrapped.Sub(ended.Time).Round(time.Second) / time.Second)
		}
		found[call] = append(found[call], o)
		return err
	})
	return found, err
}

// CallWait is the waiting time of a call in progress.
type CallWait struct {
	Seconds int               // sum of all entries
	Entry   *event.QueueEntry // the current entry; nil: not waiting
}

// CallWaits returns the waiting time and the current entry of calls, by call id.
func (s *Service) CallWaits(ctx context.Context, q db.Querier, org string, calls []string) (map[string]CallWait, error) {
	text, args := db.Where(entryColumns, org).In("call_id", calls).SQL()
	all, err := entries(ctx, q, "find visits", text, args)
	if err != nil {
		return nil, err
	}
	found, open := map[string]CallWait{}, map[string][]Entry{}
	for _, e := range all {
		w := found[e.CallID]
		w.Seconds += e.waitedSeconds(db.At(s.cfg.Clock.Now()))
		found[e.CallID] = w
		if e.Status == Waiting || e.Status == Offering {
			open[e.QueueID] = append(open[e.QueueID], e)
		}
	}
	for id, waiting := range open {
		k, err := get(ctx, q, org, id)
		if db.IsNone(err) {
			continue // just removed: its callers are routed on
		}
		if err != nil {
			return nil, fmt.Errorf("find queue: %w", err)
		}
		if err := s.addPositions(ctx, q, k, waiting); err != nil {
			return nil, err
		}
		for _, e := range waiting {
			found[e.CallID] = CallWait{Seconds: found[e.CallID].Seconds, Entry: &e.QueueEntry}
		}
	}
	return found, nil
}

// WaitedSeconds returns the seconds that the caller of a call has waited in queues, over all entries.
func (s *Service) WaitedSeconds(ctx context.Context, q db.Querier, org, call string) (sum int, err error) {
	all, err := entries(ctx, q, "find visits", entryColumns+` AND call_id = $2`, []any{org, call})
	for _, e := range all {
		sum += e.waitedSeconds(db.At(s.cfg.Clock.Now()))
	}
	return sum, err
}

// offerResult returns the result of an offer in the terms of the call detail record.
func offerResult(status string) string {
	switch status {
	case OfferConnected, OfferCompleted:
		return "answered"
	case OfferNoAnswer, OfferRejected:
		return status
	}
	return "canceled"
}

// AllNames returns the names of the organisation's queues, oldest first, at most the given number.
func (s *Service) AllNames(ctx context.Context, org string, most int) (names []string, err error) {
	const text = `SELECT name FROM queues WHERE org_id = $1 AND removed_at IS NULL ORDER BY id LIMIT $2`
	err = db.ForEach(ctx, s.cfg.DB.Read(ctx), "find names of queues", text, []any{org, most}, func(scan func(...any) error) error {
		var name string
		err := scan(&name)
		names = append(names, name)
		return err
	})
	return names, err
}

// Names returns the names of queues by id, including removed queues.
func (s *Service) Names(ctx context.Context, q db.Querier, org string, ids []string) (map[string]string, error) {
	const text = `SELECT id, name FROM queues WHERE org_id = $1`
	statement, args := db.Where(text, org).In("id", ids).SQL()
	found := map[string]string{}
	err := db.ForEach(ctx, q, "find names of queues", statement, args, func(scan func(...any) error) error {
		var id, name string
		err := scan(&id, &name)
		found[id] = name
		return err
	})
	return found, err
}
