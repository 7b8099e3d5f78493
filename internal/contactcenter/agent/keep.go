package agent

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// person is somebody, or a call, of an organisation.
type person struct{ org, id string }

// touched are agents of whom something is new that was not looked at yet.
type touched struct {
	wake chan struct{}

	mu    sync.Mutex // guards the two below
	users map[person]struct{}
	calls map[person]struct{}
}

// maxTouched bounds what waits to be looked at; beyond it the next round over everybody finds the rest.
const maxTouched = 50_000

// Touch says that something is new of a user: a phone of theirs came or went. It returns at once.
func (s *Service) Touch(org, userID string) {
	if userID != "" {
		s.touched.add(&s.touched.users, person{org, userID})
	}
}

// TouchCall says that somebody is rung in a call, has answered it, or left it. It returns at once.
func (s *Service) TouchCall(org, callID string) { s.touched.add(&s.touched.calls, person{org, callID}) }

func (t *touched) add(to *map[person]struct{}, p person) {
	t.mu.Lock()
	if len(*to) < maxTouched {
		(*to)[p] = struct{}{}
	}
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *touched) take() (users, calls []person) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for p := range t.users {
		users = append(users, p)
	}
	for p := range t.calls {
		calls = append(calls, p)
	}
	clear(t.users)
	clear(t.calls)
	return users, calls
}

// DueEvery is how often Run looks for presences that time alone changes, and ReconcileEvery how often it looks at everybody.
const (
	DueEvery       = time.Second
	ReconcileEvery = 15 * time.Second
)

// share is how much of its time Run works at most, one part in so many: what changes while it rests is told at once afterwards. A look that takes
// longer than quickLook, where telephones have hundreds of calls, is followed by a rest that is longer in the same measure again.
const (
	share     = 20
	quickLook = 2 * time.Millisecond
)

// pause is how long Run rests after a look.
func pause(took time.Duration) time.Duration {
	long := max(1, float64(took)/float64(quickLook))
	return min(time.Duration(share*float64(took)*long), DueEvery)
}

// Run tells of presences that change, until the context ends. It begins with everybody, as the calls say that are in progress.
func (s *Service) Run(ctx context.Context, log *slog.Logger) {
	due, all := time.NewTicker(DueEvery), time.NewTicker(ReconcileEvery)
	defer due.Stop()
	defer all.Stop()
	look := s.Reconcile
	for {
		began := time.Now()
		if err := look(ctx); err != nil && ctx.Err() == nil {
			log.Warn("presence of agents not told", "err", err)
		}
		rest(ctx, pause(time.Since(began)))
		select {
		case <-ctx.Done():
			return
		case <-s.touched.wake:
			look = s.Settle
		case <-due.C:
			look = s.SettleDue
		case <-all.C:
			look = s.Reconcile
		}
	}
}

// rest lets time pass.
func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// Settle tells what is new of agents that were touched.
func (s *Service) Settle(ctx context.Context) error {
	users, calls := s.touched.take()
	for org, ids := range byOrg(calls) {
		for part := range slices.Chunk(ids, batch) {
			on, err := onCall(ctx, s.DB.Read(ctx), org, part)
			if err != nil {
				return err
			}
			users = append(users, on...)
		}
	}
	return s.settleAll(ctx, users)
}

// SettleDue tells of presences that time has changed.
func (s *Service) SettleDue(ctx context.Context) error {
	// tenant: the agents of all organisations are watched
	const text = `SELECT org_id, user_id FROM agents WHERE due_at <= $1 ORDER BY due_at LIMIT 1000`
	due, err := people(ctx, s.DB.Read(ctx), text, db.At(s.Now()))
	if err != nil {
		return err
	}
	return s.settleAll(ctx, due)
}

// Reconcile looks at everybody who is not plainly offline, and tells what was missed.
func (s *Service) Reconcile(ctx context.Context) error {
	// tenant: the agents of all organisations are watched
	const text = `SELECT org_id, user_id FROM agents WHERE status <> 'offline'
		UNION SELECT d.org_id, d.user_id FROM registrations r JOIN devices d ON d.org_id = r.org_id AND d.id = r.device_id WHERE r.expires_at > $1
		UNION SELECT org_id, user_id FROM legs WHERE ended_at IS NULL AND user_id IS NOT NULL`
	all, err := people(ctx, s.DB.Read(ctx), text, db.At(s.Now()))
	if err != nil {
		return err
	}
	return s.settleAll(ctx, all)
}

func people(ctx context.Context, q db.Querier, text string, args ...any) (all []person, err error) {
	err = each(ctx, q, "find agents", text, args, func(scan func(...any) error) error {
		var p person
		err := scan(&p.org, &p.id)
		all = append(all, p)
		return err
	})
	return all, err
}

// onCall finds the users who are, or were, in calls.
func onCall(ctx context.Context, q db.Querier, org string, calls []string) ([]person, error) {
	const text = `SELECT DISTINCT org_id, user_id FROM legs WHERE org_id = $1 AND user_id IS NOT NULL`
	statement, args := of(db.Where(text, org), "call_id", calls).SQL()
	return people(ctx, q, statement, args...)
}

// batch is how many agents are looked at in one transaction, and calls in one query.
const batch = 100

func byOrg(all []person) map[string][]string {
	ids := map[string][]string{}
	for _, p := range all {
		ids[p.org] = append(ids[p.org], p.id)
	}
	return ids
}

func (s *Service) settleAll(ctx context.Context, all []person) error {
	for org, users := range byOrg(all) {
		slices.Sort(users)
		for part := range slices.Chunk(slices.Compact(users), batch) {
			if err := s.settlePart(ctx, org, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// SettleNow tells what is new of users, in a transaction of its own.
func (s *Service) SettleNow(ctx context.Context, org string, users []string) error {
	return s.settlePart(ctx, org, users)
}

// settlePart opens a transaction only where something has changed.
func (s *Service) settlePart(ctx context.Context, org string, users []string) error {
	all, err := s.States(ctx, s.DB.Read(ctx), org, users)
	if err != nil {
		return err
	}
	users = users[:0:0]
	for id, x := range all {
		if x.stale() {
			users = append(users, id)
		}
	}
	if len(users) == 0 {
		return nil
	}
	slices.Sort(users)
	return s.DB.SwiftContext(ctx, func(ctx context.Context, tx db.Querier) error { return s.SettleIn(ctx, tx, org, users) })
}

// stale reports whether there is something to write of an agent.
func (x *State) stale() bool {
	return x.changed(x.Presence) || x.row.next != nil && x.busy == "" && x.ringing == "" || x.row.exists && !x.due.Equal(x.row.due.Time)
}

// SettleIn tells, in the caller's transaction, what is new of users.
func (s *Service) SettleIn(ctx context.Context, tx db.Querier, org string, users []string) error {
	all, err := s.States(ctx, tx, org, users)
	if err != nil {
		return err
	}
	var changed []string
	for _, id := range slices.Sorted(slices.Values(users)) { // in one order, so that two transactions never wait for each other
		x := all[id]
		if x == nil {
			continue
		}
		was, err := s.settle(ctx, tx, org, x)
		if err != nil {
			return fmt.Errorf("tell presence of %s: %w", id, err)
		}
		if was {
			changed = append(changed, id)
		}
	}
	if len(changed) == 0 || s.OnPresence == nil {
		return nil
	}
	return s.OnPresence(ctx, tx, org, changed)
}

// settle keeps a choice that takes effect now, and tells the presence where it is another than before.
func (s *Service) settle(ctx context.Context, tx db.Querier, org string, x *State) (bool, error) {
	if n := x.row.next; n != nil && x.busy == "" && x.ringing == "" {
		if err := s.choose(ctx, tx, org, x.UserID, *n); err != nil {
			return false, err
		}
	}
	if !x.changed(x.Presence) {
		return false, setDue(ctx, tx, org, x.UserID, x.due)
	}
	if err := ensure(ctx, tx, org, x.UserID, db.At(s.Now())); err != nil {
		return false, err
	}
	first, err := tell(ctx, tx, org, x)
	if err != nil || !first {
		return false, err
	}
	if err := spell(ctx, tx, org, x); err != nil {
		return false, err
	}
	p := x.Presence
	return true, s.Outbox.Publish(ctx, tx, org, event.AgentPresence{AgentID: x.UserID, Status: p.Status, Reason: p.Reason,
		CallID: db.Null(x.CallID).Ptr(), Since: p.Since, Until: p.Until.Ptr()})
}

// choose makes a choice take effect. Do-not-disturb is the user's, whatever way it is switched.
func (s *Service) choose(ctx context.Context, tx db.Querier, org, id string, c choice) error {
	if err := ensure(ctx, tx, org, id, db.At(s.Now())); err != nil {
		return err
	}
	if err := s.Users.SwitchDND(ctx, tx, org, id, c.Status == DND, c.Until); err != nil {
		return err
	}
	if err := choose(ctx, tx, org, id, c, false); err != nil {
		return err
	}
	if c.Status != Available {
		return nil
	}
	if s.OnReady != nil {
		if err := s.OnReady(ctx, tx, org, id); err != nil {
			return err
		}
	}
	return ready(ctx, tx, org, id)
}

// SweepSpells removes spells that ended before a time.
func (s *Service) SweepSpells(ctx context.Context, before time.Time) (gone int64, err error) {
	// tenant: all organisations' presence is kept equally long
	const text = `DELETE FROM agent_spells WHERE until_at < $1`
	err = s.DB.Tx(ctx, func(tx db.Querier) error {
		r, err := tx.Exec(ctx, text, db.At(before))
		if err != nil {
			return err
		}
		gone, err = r.RowsAffected()
		return err
	})
	return gone, err
}
