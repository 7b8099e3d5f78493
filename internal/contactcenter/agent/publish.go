package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/observe"
)

// orgKey is the id of a user or of a call, with its organisation.
type orgKey struct{ org, id string }

// changedSet holds the users and calls that changed, or were shown, and are not processed yet.
type changedSet struct {
	wake chan struct{}

	mu    sync.Mutex // guards the fields below
	users map[orgKey]struct{}
	calls map[orgKey]struct{}
	shown map[orgKey]struct{} // users whose presence was shown before it was published
}

// maxChanged limits the size of changedSet. Changes beyond it are found by the next Reconcile.
const maxChanged = 50_000

// UserChanged records that a phone of a user was registered or unregistered. It returns at once.
func (s *Service) UserChanged(org, userID string) {
	if userID != "" {
		s.changed.add(&s.changed.users, orgKey{org, userID})
	}
}

// CallChanged records that legs of a call ring, were answered, or ended. users are those of the legs, perhaps none; nil
// if they are not known: then all users of the call are checked. It returns at once.
func (s *Service) CallChanged(org, callID string, users []string) {
	if users == nil {
		s.changed.add(&s.changed.calls, orgKey{org, callID})
	}
	for _, id := range users {
		s.changed.add(&s.changed.users, orgKey{org, id})
	}
}

func (t *changedSet) add(to *map[orgKey]struct{}, p orgKey) {
	t.mu.Lock()
	if len(*to) < maxChanged {
		(*to)[p] = struct{}{}
	}
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *changedSet) take() (users, calls, shown []orgKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for p := range t.users {
		users = append(users, p)
	}
	for p := range t.calls {
		calls = append(calls, p)
	}
	for p := range t.shown {
		shown = append(shown, p)
	}
	clear(t.users)
	clear(t.calls)
	clear(t.shown)
	return users, calls, shown
}

// DueInterval is how often Run publishes presences that change with time alone. ReconcileInterval is how often it
// checks all agents.
const (
	DueInterval       = time.Second
	ReconcileInterval = 15 * time.Second
)

// workShare limits the time that Run works to one part in workShare. Changes during a pause are published at once
// afterwards. A round longer than quickRound, as with hundreds of calls per phone, is followed by a pause that is
// longer in the same proportion again.
const (
	workShare  = 20
	quickRound = 2 * time.Millisecond
)

// pauseAfter returns how long Run pauses after a round that took the given time.
func pauseAfter(took time.Duration) time.Duration {
	long := max(1, float64(took)/float64(quickRound))
	return min(time.Duration(workShare*float64(took)*long), DueInterval)
}

// Run publishes changes of presence until ctx ends. It starts with all agents, from the calls in progress.
func (s *Service) Run(ctx context.Context, log *slog.Logger) {
	due, all := clock.NewTicker(DueInterval), clock.NewTicker(ReconcileInterval)
	defer due.Stop()
	defer all.Stop()
	look := s.Reconcile
	for {
		began := time.Now()
		if err := look(ctx); err != nil && ctx.Err() == nil {
			log.Warn("presence of agents not published", "err", err)
		}
		sleepContext(ctx, pauseAfter(time.Since(began)))
		select {
		case <-ctx.Done():
			return
		case <-s.changed.wake:
			look = s.PublishChanged
		case <-due.C:
			look = s.PublishDue
		case <-all.C:
			look = s.Reconcile
		}
	}
}

// sleepContext waits for d or until ctx ends.
func sleepContext(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// PublishChanged publishes the changes of users and calls since the last round.
func (s *Service) PublishChanged(ctx context.Context) error {
	users, calls, shown := s.changed.take()
	again := s.republish(ctx, shown)
	users = append(users, shown...)
	for org, ids := range idsByOrg(calls) {
		for part := range slices.Chunk(ids, batchSize) {
			on, err := usersOfCalls(ctx, s.cfg.DB.Read(ctx), org, part)
			if err != nil {
				return errors.Join(again, err)
			}
			users = append(users, on...)
		}
	}
	return errors.Join(again, s.publishAll(ctx, users))
}

// PublishDue publishes presences that time has changed.
func (s *Service) PublishDue(ctx context.Context) error {
	// tenant: reads the agents of all organisations
	const text = `SELECT org_id, user_id FROM agents WHERE due_at <= $1 ORDER BY due_at LIMIT 1000`
	due, err := queryKeys(ctx, s.cfg.DB.Read(ctx), text, db.At(s.cfg.Clock.Now()))
	if err != nil {
		return err
	}
	return s.publishAll(ctx, due)
}

// Reconcile checks all agents who may not be offline, and publishes changes that were missed.
func (s *Service) Reconcile(ctx context.Context) error {
	// tenant: reads the agents of all organisations
	const text = `SELECT org_id, user_id FROM agents WHERE status <> 'offline'
		UNION SELECT d.org_id, d.user_id FROM registrations r JOIN devices d ON d.org_id = r.org_id AND d.id = r.device_id
		WHERE r.expires_at > $1
		UNION SELECT org_id, user_id FROM legs WHERE ended_at IS NULL AND user_id IS NOT NULL`
	all, err := queryKeys(ctx, s.cfg.DB.Read(ctx), text, db.At(s.cfg.Clock.Now()))
	if err != nil {
		return err
	}
	return s.publishAll(ctx, all)
}

func queryKeys(ctx context.Context, q db.Querier, text string, args ...any) (all []orgKey, err error) {
	err = db.ForEach(ctx, q, "find agents", text, args, func(scan func(...any) error) error {
		var p orgKey
		err := scan(&p.org, &p.id)
		all = append(all, p)
		return err
	})
	return all, err
}

// usersOfCalls returns the users with a leg in the calls, including ended legs.
func usersOfCalls(ctx context.Context, q db.Querier, org string, calls []string) ([]orgKey, error) {
	const text = `SELECT DISTINCT org_id, user_id FROM legs WHERE org_id = $1 AND user_id IS NOT NULL`
	statement, args := inUsers(db.Where(text, org), "call_id", calls).SQL()
	return queryKeys(ctx, q, statement, args...)
}

// batchSize is the number of agents per transaction, and of calls per query.
const batchSize = 100

func idsByOrg(all []orgKey) map[string][]string {
	ids := map[string][]string{}
	for _, p := range all {
		ids[p.org] = append(ids[p.org], p.id)
	}
	return ids
}

func (s *Service) publishAll(ctx context.Context, all []orgKey) error {
	for org, users := range idsByOrg(all) {
		slices.Sort(users)
		for part := range slices.Chunk(slices.Compact(users), batchSize) {
			if err := s.publishBatch(ctx, org, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// PublishPresenceNow publishes the changes of users in a transaction of its own.
func (s *Service) PublishPresenceNow(ctx context.Context, org string, users []string) error {
	return s.publishBatch(ctx, org, users)
}

// publishBatch opens a transaction only if there is a change.
func (s *Service) publishBatch(ctx context.Context, org string, users []string) error {
	all, err := s.States(ctx, s.cfg.DB.Read(ctx), org, users)
	if err != nil {
		return err
	}
	users = users[:0:0]
	for id, x := range all {
		if x.needsUpdate() {
			users = append(users, id)
		}
	}
	if len(users) == 0 {
		return nil
	}
	slices.Sort(users)
	return s.cfg.DB.TxRelaxedContext(ctx, func(ctx context.Context, tx db.Querier) error { return s.PublishPresence(ctx, tx, org, users) })
}

// needsUpdate reports whether the row of an agent must be written.
func (x *State) needsUpdate() bool {
	return x.presenceChanged(x.Presence) || x.nextChoiceApplies() || x.isWithdrawn() ||
		x.row.exists && !x.nextChangeAt.Equal(x.row.dueAt.Time)
}

// PublishPresence publishes the changes of users in the caller's transaction. Offers to agents who take no calls any
// more end first.
func (s *Service) PublishPresence(ctx context.Context, tx db.Querier, org string, users []string) error {
	all, err := s.endOffers(ctx, tx, org, users)
	if err != nil {
		return err
	}
	var changed []string
	for _, id := range slices.Sorted(slices.Values(users)) { // in one order, so that transactions do not deadlock
		x := all[id]
		if x == nil {
			continue
		}
		was, err := s.publishChange(ctx, tx, org, x)
		if err != nil {
			return fmt.Errorf("publish presence of %s: %w", id, err)
		}
		if was {
			changed = append(changed, id)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return observe.Each(s.observers.presence, func(o PresenceObserver) error { return o.PresenceChanged(ctx, tx, org, changed) })
}

// endOffers notifies the observers of agents with an offer that take no calls any more. It returns the states of the
// users after that.
func (s *Service) endOffers(ctx context.Context, tx db.Querier, org string, users []string) (map[string]*State, error) {
	all, err := s.States(ctx, tx, org, users)
	if err != nil {
		return nil, err
	}
	var gone []string
	for id, x := range all {
		if x.isWithdrawn() {
			gone = append(gone, id)
		}
	}
	if len(gone) == 0 {
		return all, nil
	}
	slices.Sort(gone)
	if err := observe.Each(s.observers.withdrawn, func(o WithdrawnObserver) error {
		return o.AgentsWithdrawn(ctx, tx, org, gone)
	}); err != nil {
		return nil, fmt.Errorf("end offers: %w", err)
	}
	return s.States(ctx, tx, org, users)
}

// publishChange applies a choice that takes effect now, and publishes the presence if it changed.
func (s *Service) publishChange(ctx context.Context, tx db.Querier, org string, x *State) (bool, error) {
	if x.nextChoiceApplies() {
		if err := s.applyChoice(ctx, tx, org, x.UserID, *x.row.nextChoice); err != nil {
			return false, err
		}
	}
	if !x.presenceChanged(x.Presence) {
		return false, setDue(ctx, tx, org, x.UserID, x.nextChangeAt)
	}
	if err := ensureRow(ctx, tx, org, x.UserID, db.At(s.cfg.Clock.Now())); err != nil {
		return false, err
	}
	first, err := storePublished(ctx, tx, org, x)
	if err != nil || !first {
		return false, err
	}
	if err := insertSpell(ctx, tx, org, x); err != nil {
		return false, err
	}
	return true, s.publishEvent(ctx, tx, org, x)
}

// applyChoice makes a choice take effect. Do-not-disturb is a setting of the user, however it is switched.
func (s *Service) applyChoice(ctx context.Context, tx db.Querier, org, id string, c choice) error {
	if err := ensureRow(ctx, tx, org, id, db.At(s.cfg.Clock.Now())); err != nil {
		return err
	}
	if err := s.cfg.Users.SwitchDND(ctx, tx, org, id, c.Status == DND, c.Until); err != nil {
		return err
	}
	if err := storeChoice(ctx, tx, org, id, c, false); err != nil {
		return err
	}
	if c.Status != Available {
		return nil
	}
	if err := observe.Each(s.observers.ready, func(o ReadyObserver) error { return o.AgentReady(ctx, tx, org, id) }); err != nil {
		return err
	}
	return clearPauses(ctx, tx, org, id)
}

// SweepSpells deletes presence intervals that ended before a time, and returns their number.
func (s *Service) SweepSpells(ctx context.Context, before time.Time) (gone int64, err error) {
	// tenant: all organisations have the same retention
	const text = `DELETE FROM agent_spells WHERE until_at < $1`
	err = s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		r, err := tx.Exec(ctx, text, db.At(before))
		if err != nil {
			return err
		}
		gone, err = r.RowsAffected()
		return err
	})
	return gone, err
}
