package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// queueKey identifies a queue of an organisation.
type queueKey struct{ org, queue string }

// snapshot holds the figures of the last queue.updated event of a queue.
type snapshot struct{ waiting, available int }

// maxLastPublished limits the number of queues whose last event is remembered.
const maxLastPublished = 20_000

// dirtyQueues holds the queues that changed since their last event.
type dirtyQueues struct {
	wake chan struct{}

	mu     sync.Mutex // guards queues
	queues map[queueKey]struct{}

	lastPublished map[queueKey]snapshot // used by the goroutine of Run only
}

// notifyChange marks a queue as changed and wakes the dispatcher, after the transaction has committed.
func (s *Service) notifyChange(tx db.Querier, org, queue string) {
	db.OnCommit(tx, func() {
		s.markDirty(org, queue)
		s.cfg.Bus.Publish(Wake, org)
	})
}

func (s *Service) markDirty(org, queue string) {
	t := &s.dirty
	t.mu.Lock()
	t.queues[queueKey{org, queue}] = struct{}{}
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *dirtyQueues) take() map[queueKey]struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.queues
	t.queues = map[queueKey]struct{}{}
	return all
}

// PresenceChanged marks the queues of agents whose presence changed.
func (s *Service) PresenceChanged(ctx context.Context, tx db.Querier, org string, users []string) error {
	of, err := s.QueuesOfUsers(ctx, tx, org, users)
	if err != nil {
		return err
	}
	for _, queues := range of {
		for _, id := range queues {
			s.notifyChange(tx, org, id)
		}
	}
	return nil
}

// UpdateInterval is the least time between two events about one queue. SweepInterval is the time between two sweeps
// of stale offers and entries by Run.
const (
	UpdateInterval = 200 * time.Millisecond
	SweepInterval  = time.Second
)

// Run publishes queue.updated when callers or agents of queues come and go, and sweeps stale offers and entries. It
// returns when ctx ends.
func (s *Service) Run(ctx context.Context, log *slog.Logger) {
	sweep := clock.NewTicker(SweepInterval)
	defer sweep.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-s.dirty.wake:
			err = s.PublishUpdates(ctx)
			if !sleepContext(ctx, UpdateInterval) {
				return
			}
		case <-sweep.C:
			err = s.Sweep(ctx)
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("queue maintenance failed", "err", err)
		}
	}
}

// sleepContext waits for d. It returns false if ctx ended first.
func sleepContext(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// PublishUpdates publishes queue.updated for queues whose numbers of callers or agents changed. Only Run and tests
// call it.
func (s *Service) PublishUpdates(ctx context.Context) error {
	var failed error
	for p := range s.dirty.take() {
		failed = errors.Join(failed, s.publishUpdate(ctx, p))
	}
	return failed
}

func (s *Service) publishUpdate(ctx context.Context, p queueKey) error {
	q := s.cfg.DB.Read(ctx)
	k, err := get(ctx, q, p.org, p.queue)
	if db.IsNone(err) {
		delete(s.dirty.lastPublished, p)
		return nil
	}
	if err != nil {
		return err
	}
	x, err := s.currentStats(ctx, q, k)
	if err != nil {
		return err
	}
	now := snapshot{x.CallersWaiting, x.AgentsAvailable}
	if last, known := s.dirty.lastPublished[p]; known && last == now {
		return nil
	}
	if len(s.dirty.lastPublished) >= maxLastPublished {
		clear(s.dirty.lastPublished)
	}
	s.dirty.lastPublished[p] = now
	return s.cfg.DB.TxRelaxed(ctx, func(tx db.Querier) error {
		return s.cfg.Outbox.Publish(ctx, tx, p.org, event.QueueUpdated{QueueID: k.ID, QueueName: k.Name, CallersWaiting: x.CallersWaiting,
			AgentsAvailable: x.AgentsAvailable, LongestWaitSeconds: x.LongestWait, At: x.AsOf})
	})
}

// staleRow is an offer past its lease, or an entry whose call is over.
type staleRow struct {
	org, id, status string
	talk            int
	reason          db.Null
}

// Sweep ends offers whose lease is over, and entries whose calls have ended without a record of it, as after a crash.
// So no agent stays reserved and no entry stays open for ever.
func (s *Service) Sweep(ctx context.Context) error {
	return errors.Join(s.sweepOffers(ctx), s.sweepEntries(ctx), s.sweepLostNodes(ctx), s.sweepDials(ctx))
}

// lostAfter is how long a lease must be over before the node's callers count as gone.
const lostAfter = time.Minute

// sweepLostNodes ends the entries of nodes that crashed and did not come back.
func (s *Service) sweepLostNodes(ctx context.Context) error {
	// tenant: reads the entries of all organisations
	const text = `SELECT org_id, id FROM queue_entries WHERE ` + openCondition +
		` AND status IN ('waiting', 'offering') AND lease_until <= $1 LIMIT 500`
	return s.sweepEach(ctx, text, []any{db.At(s.cfg.Clock.Now().Add(-lostAfter))},
		func(ctx context.Context, tx db.Querier, x staleRow) error {
			return s.Leave(ctx, tx, x.org, x.id, Abandoned, "node_crash")
		})
}

// DropNode ends the entries and the ringing offers of a lost node. Each change runs under guard, which begins its transaction.
func (s *Service) DropNode(
	ctx context.Context, node string, guard func(context.Context, func(context.Context, db.Querier) error) error,
) error {
	// tenant: the callers of all organisations left with the node
	const entries = `SELECT org_id, id FROM queue_entries WHERE ` + openCondition + ` AND status IN ('waiting', 'offering') AND node = $1`
	// tenant: the offers of all organisations ended with the node
	const offers = `SELECT org_id, id FROM queue_offers WHERE status = 'offering' AND node = $1`
	err := s.endUnder(ctx, entries, []any{node}, guard, func(ctx context.Context, tx db.Querier, x staleRow) error {
		return s.Leave(ctx, tx, x.org, x.id, Abandoned, "node_crash")
	})
	if err != nil {
		return err
	}
	return s.endUnder(ctx, offers, []any{node}, guard, func(ctx context.Context, tx db.Querier, x staleRow) error {
		_, err := s.DeclineOffer(ctx, tx, x.org, x.id, OfferExpired)
		return err
	})
}

// sweepDials ends the offers of callbacks whose call was never placed, as after a crash.
func (s *Service) sweepDials(ctx context.Context) error {
	// tenant: reads the callbacks of all organisations
	const text = `SELECT o.org_id, o.id FROM queue_entries e JOIN queue_offers o ON o.org_id = e.org_id AND o.entry_id = e.id
		AND o.status = 'offering'
		WHERE e.status IN ('waiting', 'offering', 'callback_pending', 'callback_dialing', 'connected') AND e.status = 'callback_dialing'
		AND o.offered_at <= $1
			AND NOT EXISTS (SELECT 1 FROM calls c WHERE c.org_id = o.org_id AND c.id = o.call_id) LIMIT 500`
	return s.sweepEach(ctx, text, []any{db.At(s.cfg.Clock.Now().Add(-2 * endGrace))}, func(ctx context.Context, tx db.Querier,
		x staleRow) error {
		_, err := s.DeclineOffer(ctx, tx, x.org, x.id, OfferExpired)
		return err
	})
}

// sweepEach calls end for each row of a statement, in a transaction each.
func (s *Service) sweepEach(ctx context.Context, text string, args []any, end func(context.Context, db.Querier, staleRow) error) error {
	return s.endUnder(ctx, text, args, s.cfg.DB.TxRelaxedContext, end)
}

// endUnder calls end for each row of a statement, in a transaction each, which begin starts.
func (s *Service) endUnder(ctx context.Context, text string, args []any,
	begin func(context.Context, func(context.Context, db.Querier) error) error,
	end func(context.Context, db.Querier, staleRow) error) error {
	var over []staleRow
	err := db.ForEach(ctx, s.cfg.DB.Read(ctx), "find leftovers", text, args, func(scan func(...any) error) error {
		var x staleRow
		err := scan(&x.org, &x.id)
		over = append(over, x)
		return err
	})
	if err != nil {
		return err
	}
	for _, x := range over {
		err := begin(ctx, func(ctx context.Context, tx db.Querier) error { return end(ctx, tx, x) })
		if err != nil && !errors.Is(err, ErrGone) {
			return fmt.Errorf("end %s: %w", x.id, err)
		}
	}
	return nil
}

// sweepOffers ends expired offers, except those of entries with a valid lease: a busy node rings late and ends its
// offers itself.
func (s *Service) sweepOffers(ctx context.Context) error {
	// tenant: reads the offers of all organisations
	const text = `SELECT o.org_id, o.id FROM queue_offers o WHERE o.status = 'offering' AND o.lease_until <= $1
		AND (o.lease_until <= $2 OR NOT EXISTS (SELECT 1 FROM queue_entries e WHERE e.org_id = o.org_id AND e.id = o.entry_id
		AND e.lease_until > $1))
		ORDER BY o.lease_until LIMIT 500`
	now := s.cfg.Clock.Now()
	return s.sweepEach(ctx, text, []any{db.At(now), db.At(now.Add(-lostAfter))}, func(ctx context.Context, tx db.Querier,
		x staleRow) error {
		_, err := s.DeclineOffer(ctx, tx, x.org, x.id, OfferExpired)
		return err
	})
}

// endGrace is the time for the node that ends a call to end the entry too, before the sweep does.
const endGrace = 5 * time.Second

func (s *Service) sweepEntries(ctx context.Context) error {
	// tenant: reads the entries of all organisations
	const text = `SELECT e.org_id, e.id, e.status, c.talk_seconds, c.end_reason FROM queue_entries e JOIN calls c ON c.org_id = e.org_id
		AND c.id = e.call_id
		WHERE e.status IN ('waiting', 'offering', 'callback_pending', 'callback_dialing', 'connected')
			AND e.status IN ('waiting', 'offering', 'connected') AND c.ended_at <= $1 LIMIT 500`
	var over []staleRow
	err := db.ForEach(ctx, s.cfg.DB.Read(ctx), "find callers", text, []any{db.At(s.cfg.Clock.Now().Add(-endGrace))},
		func(scan func(...any) error) error {
			var x staleRow
			err := scan(&x.org, &x.id, &x.status, &x.talk, &x.reason)
			over = append(over, x)
			return err
		})
	if err != nil {
		return err
	}
	for _, x := range over {
		err := s.cfg.DB.TxRelaxedContext(ctx, func(ctx context.Context, tx db.Querier) error {
			if x.status == Connected {
				return s.CompleteEntry(ctx, tx, x.org, x.id, time.Duration(x.talk)*time.Second)
			}
			return s.Leave(ctx, tx, x.org, x.id, Abandoned, string(x.reason))
		})
		if err != nil && !errors.Is(err, ErrGone) {
			return fmt.Errorf("end visit %s: %w", x.id, err)
		}
	}
	return nil
}
