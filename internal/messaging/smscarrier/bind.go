package smscarrier

import (
	"context"
	"fmt"
	"sync"
	"time"

	"soniq/internal/platform/db"
)

// Connections to carriers that need one (SMPP). Each is kept by one node of those on the database, which holds a
// lease on it.

// Lease times.
const (
	holdFor   = 15 * time.Second // a node that does not renew loses its connections after this time
	holdEvery = 3 * time.Second
)

// connectionTable has the connections of this node.
type binds struct {
	mu   sync.Mutex // guards held
	held map[string]*bind
}

type bind struct {
	line  *line
	until time.Time
	stop  context.CancelFunc
	over  sync.WaitGroup
}

// holdsConnection reports whether this node keeps the connection of a carrier.
func (s *Service) held(id string) bool { return s.binding(id) != nil }

// Run keeps the connections of carriers until the context ends, and then releases them.
func (s *Service) Run(ctx context.Context) {
	changes := s.Bus.Subscribe(Changed, 16)
	defer changes.Close()
	tick := time.NewTicker(holdEvery)
	defer tick.Stop()
	defer s.letGo()
	for {
		if err := s.follow(ctx); err != nil && ctx.Err() == nil {
			s.Log.Warn("connections to SMS carriers not checked; next attempt in 3 s", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-changes.C:
		}
	}
}

// wantedConnection is a carrier that needs a connection, with the holder of its lease.
type wish struct {
	org, id string
	version db.Time
	node    string
	until   db.Time
}

// reconcile renews the leases of this node, takes free ones, and closes the connections of carriers that were deleted
// or changed.
func (s *Service) follow(ctx context.Context) error {
	defer s.expire()
	began := s.Now()
	if err := s.renew(ctx, began.Add(holdFor)); err != nil {
		return err
	}
	all, err := s.wishes(ctx)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, w := range all {
		wanted[w.id] = true
		if err := s.hold(ctx, w, began.Add(holdFor)); err != nil {
			return fmt.Errorf("hold carrier %s: %w", w.id, err)
		}
	}
	for _, id := range s.holding() {
		if !wanted[id] {
			s.close(id)
			s.forget(id)
		}
	}
	return nil
}

// renewLeases extends all leases of this node.
func (s *Service) renew(ctx context.Context, until time.Time) error {
	if len(s.holding()) == 0 {
		return nil
	}
	return s.DB.Tx(ctx, func(tx db.Querier) error {
		// tenant: the leases of all organisations
		const q = `UPDATE sms_carrier_states SET held_until = $2 WHERE node = $1 AND held_until > 0`
		_, err := tx.Exec(ctx, q, s.Node, db.At(until))
		return err
	})
}

func (s *Service) wishes(ctx context.Context) ([]wish, error) {
	// tenant: the carriers of all organisations
	const q = `SELECT c.org_id, c.id, c.provider, c.updated_at, COALESCE(h.node, ''), COALESCE(h.held_until, 0)
		FROM sms_carriers c LEFT JOIN sms_carrier_states h ON h.org_id = c.org_id AND h.carrier_id = c.id WHERE c.enabled`
	rows, err := s.DB.Read(ctx).Query(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("list carriers to connect with: %w", err)
	}
	defer rows.Close()
	var all []wish
	for rows.Next() {
		var w wish
		var name string
		if err := rows.Scan(&w.org, &w.id, &name, &w.version, &w.node, &w.until); err != nil {
			return nil, err
		}
		if p, _ := providerOf(name); p.binds {
			all = append(all, w)
		}
	}
	return all, rows.Err()
}

// ensureConnection opens the connection of a carrier on this node, unless another node holds the lease.
func (s *Service) hold(ctx context.Context, w wish, until time.Time) error {
	b := s.binding(w.id)
	if b != nil && w.node == s.Node && b.line.UpdatedAt.Equal(w.version.Time) {
		s.extend(w.id, until)
		s.seen(ctx, b.line, b.line.adapter.(Binder).State())
		return nil
	}
	s.close(w.id) // the carrier has changed, or another node has the lease
	if w.node != s.Node && s.Now().Before(w.until.Time) {
		return nil
	}
	if mine, err := s.lease(ctx, w, until); err != nil || !mine {
		return err
	}
	c, err := s.carrier(ctx, s.DB.Read(ctx), w.org, w.id)
	if db.IsNone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	l, err := s.line(c)
	if err != nil {
		s.Log.Error("SMS carrier cannot be used", "org", c.org, "carrier", c.ID, "err", err)
		return nil
	}
	s.open(ctx, l, until)
	return nil
}

func (s *Service) binding(id string) *bind {
	s.binds.mu.Lock()
	defer s.binds.mu.Unlock()
	return s.binds.held[id]
}

func (s *Service) extend(id string, until time.Time) {
	s.binds.mu.Lock()
	defer s.binds.mu.Unlock()
	if b := s.binds.held[id]; b != nil {
		b.until = until
	}
}

// acquireLease takes the lease on a connection, and reports whether it succeeded.
func (s *Service) lease(ctx context.Context, c wish, until time.Time) (mine bool, err error) {
	err = s.DB.Tx(ctx, func(tx db.Querier) error {
		const q = `INSERT INTO sms_carrier_states (org_id, carrier_id, node, held_until, status, error, changed_at)
			SELECT org_id, id, $3, $4, '', NULL, $5 FROM sms_carriers WHERE org_id = $1 AND id = $2
			ON CONFLICT (org_id, carrier_id) DO UPDATE SET node = excluded.node, held_until = excluded.held_until
			WHERE sms_carrier_states.node = excluded.node OR sms_carrier_states.held_until < $5`
		r, err := tx.Exec(ctx, q, c.org, c.id, s.Node, db.At(until), db.At(s.Now()))
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		mine = n == 1
		return err
	})
	return mine, err
}

func (s *Service) open(ctx context.Context, l *line, until time.Time) {
	ctx, stop := context.WithCancel(ctx)
	b := &bind{line: l, until: until, stop: stop}
	s.binds.mu.Lock()
	if s.binds.held == nil {
		s.binds.held = map[string]*bind{}
	}
	s.binds.held[l.ID] = b
	s.binds.mu.Unlock()
	b.over.Go(func() { l.adapter.(Binder).Run(ctx) })
}

func (s *Service) holding() (all []string) {
	s.binds.mu.Lock()
	defer s.binds.mu.Unlock()
	for id := range s.binds.held {
		all = append(all, id)
	}
	return all
}

// closeExpired closes connections whose lease another node may take by now, because the database could not be
// reached.
func (s *Service) expire() {
	now := s.Now()
	for _, id := range s.holding() {
		s.binds.mu.Lock()
		b := s.binds.held[id]
		late := b != nil && now.Add(holdEvery).After(b.until)
		s.binds.mu.Unlock()
		if late {
			s.close(id)
		}
	}
}

// closeConnection closes a connection and waits until it has ended.
func (s *Service) close(id string) {
	s.binds.mu.Lock()
	b := s.binds.held[id]
	delete(s.binds.held, id)
	s.binds.mu.Unlock()
	if b != nil {
		b.stop()
		b.over.Wait()
	}
}

// releaseAll closes all connections and releases their leases, so that another node can take them at once.
func (s *Service) letGo() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, id := range s.holding() {
		l := s.look(id)
		s.close(id)
		if l == nil {
			continue
		}
		err := s.DB.Tx(ctx, func(tx db.Querier) error {
			const q = `UPDATE sms_carrier_states SET held_until = 0, status = '', error = NULL WHERE org_id = $1 AND carrier_id = $2 AND node = $3`
			_, err := tx.Exec(ctx, q, l.org, id, s.Node)
			return err
		})
		if err != nil {
			s.Log.Warn("lease on a carrier connection not released; it expires in 15 s", "carrier", id, "err", err)
		}
	}
}
