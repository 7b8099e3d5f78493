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
	leaseTime          = 15 * time.Second // a node that does not renew loses its connections after this time
	leaseRenewInterval = 3 * time.Second
)

// connectionTable has the connections of this node.
type connectionTable struct {
	mu   sync.Mutex // guards held
	held map[string]*carrierConnection
}

type carrierConnection struct {
	client  *carrierClient
	until   time.Time
	stop    context.CancelFunc
	running sync.WaitGroup
}

// holdsConnection reports whether this node keeps the connection of a carrier.
func (s *Service) holdsConnection(id string) bool { return s.connection(id) != nil }

// Run keeps the connections of carriers until the context ends, and then releases them.
func (s *Service) Run(ctx context.Context) {
	changes := s.cfg.Bus.Subscribe(Changed, 16)
	defer changes.Close()
	tick := time.NewTicker(leaseRenewInterval)
	defer tick.Stop()
	defer s.releaseAll()
	for {
		if err := s.reconcile(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("connections to SMS carriers not checked; next attempt in 3 s", "err", err)
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
type wantedConnection struct {
	org, id string
	version db.Time
	node    string
	until   db.Time
}

// reconcile renews the leases of this node, takes free ones, and closes the connections of carriers that were deleted
// or changed.
func (s *Service) reconcile(ctx context.Context) error {
	defer s.closeExpired()
	began := s.cfg.Clock.Now()
	if err := s.renewLeases(ctx, began.Add(leaseTime)); err != nil {
		return err
	}
	all, err := s.wantedConnections(ctx)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, w := range all {
		wanted[w.id] = true
		if err := s.ensureConnection(ctx, w, began.Add(leaseTime)); err != nil {
			return fmt.Errorf("hold carrier %s: %w", w.id, err)
		}
	}
	for _, id := range s.connectedIDs() {
		if !wanted[id] {
			s.closeConnection(id)
			s.removeClient(id)
		}
	}
	return nil
}

// renewLeases extends all leases of this node.
func (s *Service) renewLeases(ctx context.Context, until time.Time) error {
	if len(s.connectedIDs()) == 0 {
		return nil
	}
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		// tenant: the leases of all organisations
		const q = `UPDATE sms_carrier_states SET held_until = $2 WHERE node = $1 AND held_until > 0`
		_, err := tx.Exec(ctx, q, s.cfg.Node, db.At(until))
		return err
	})
}

func (s *Service) wantedConnections(ctx context.Context) ([]wantedConnection, error) {
	// tenant: the carriers of all organisations
	const q = `SELECT c.org_id, c.id, c.provider, c.updated_at, COALESCE(h.node, ''), COALESCE(h.held_until, 0)
		FROM sms_carriers c LEFT JOIN sms_carrier_states h ON h.org_id = c.org_id AND h.carrier_id = c.id WHERE c.enabled`
	rows, err := s.cfg.DB.Read(ctx).Query(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("list carriers to connect with: %w", err)
	}
	defer rows.Close()
	var all []wantedConnection
	for rows.Next() {
		var w wantedConnection
		var name string
		if err := rows.Scan(&w.org, &w.id, &name, &w.version, &w.node, &w.until); err != nil {
			return nil, err
		}
		if p, _ := providerOf(name); p.hasConnection {
			all = append(all, w)
		}
	}
	return all, rows.Err()
}

// ensureConnection opens the connection of a carrier on this node, unless another node holds the lease.
func (s *Service) ensureConnection(ctx context.Context, w wantedConnection, until time.Time) error {
	b := s.connection(w.id)
	if b != nil && w.node == s.cfg.Node && b.client.UpdatedAt.Equal(w.version.Time) {
		s.extendLease(w.id, until)
		s.recordState(ctx, b.client, b.client.adapter.(Binder).State())
		return nil
	}
	s.closeConnection(w.id) // the carrier has changed, or another node has the lease
	if w.node != s.cfg.Node && s.cfg.Clock.Now().Before(w.until.Time) {
		return nil
	}
	if mine, err := s.acquireLease(ctx, w, until); err != nil || !mine {
		return err
	}
	c, err := s.carrier(ctx, s.cfg.DB.Read(ctx), w.org, w.id)
	if db.IsNone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	l, err := s.openClient(c)
	if err != nil {
		s.cfg.Log.Error("SMS carrier cannot be used", "org", c.org, "carrier", c.ID, "err", err)
		return nil
	}
	s.startConnection(ctx, l, until)
	return nil
}

func (s *Service) connection(id string) *carrierConnection {
	s.connections.mu.Lock()
	defer s.connections.mu.Unlock()
	return s.connections.held[id]
}

func (s *Service) extendLease(id string, until time.Time) {
	s.connections.mu.Lock()
	defer s.connections.mu.Unlock()
	if b := s.connections.held[id]; b != nil {
		b.until = until
	}
}

// acquireLease takes the lease on a connection, and reports whether it succeeded.
func (s *Service) acquireLease(ctx context.Context, c wantedConnection, until time.Time) (mine bool, err error) {
	err = s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		const q = `INSERT INTO sms_carrier_states (org_id, carrier_id, node, held_until, status, error, changed_at)
			SELECT org_id, id, $3, $4, '', NULL, $5 FROM sms_carriers WHERE org_id = $1 AND id = $2
			ON CONFLICT (org_id, carrier_id) DO UPDATE SET node = excluded.node, held_until = excluded.held_until
			WHERE sms_carrier_states.node = excluded.node OR sms_carrier_states.held_until < $5`
		r, err := tx.Exec(ctx, q, c.org, c.id, s.cfg.Node, db.At(until), db.At(s.cfg.Clock.Now()))
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		mine = n == 1
		return err
	})
	return mine, err
}

func (s *Service) startConnection(ctx context.Context, l *carrierClient, until time.Time) {
	ctx, stop := context.WithCancel(ctx)
	b := &carrierConnection{client: l, until: until, stop: stop}
	s.connections.mu.Lock()
	if s.connections.held == nil {
		s.connections.held = map[string]*carrierConnection{}
	}
	s.connections.held[l.ID] = b
	s.connections.mu.Unlock()
	b.running.Go(func() { l.adapter.(Binder).Run(ctx) })
}

func (s *Service) connectedIDs() (all []string) {
	s.connections.mu.Lock()
	defer s.connections.mu.Unlock()
	for id := range s.connections.held {
		all = append(all, id)
	}
	return all
}

// closeExpired closes connections whose lease another node may take by now, because the database could not be
// reached.
func (s *Service) closeExpired() {
	now := s.cfg.Clock.Now()
	for _, id := range s.connectedIDs() {
		s.connections.mu.Lock()
		b := s.connections.held[id]
		late := b != nil && now.Add(leaseRenewInterval).After(b.until)
		s.connections.mu.Unlock()
		if late {
			s.closeConnection(id)
		}
	}
}

// closeConnection closes a connection and waits until it has ended.
func (s *Service) closeConnection(id string) {
	s.connections.mu.Lock()
	b := s.connections.held[id]
	delete(s.connections.held, id)
	s.connections.mu.Unlock()
	if b != nil {
		b.stop()
		b.running.Wait()
	}
}

// releaseAll closes all connections and releases their leases, so that another node can take them at once.
func (s *Service) releaseAll() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, id := range s.connectedIDs() {
		l := s.findClient(id)
		s.closeConnection(id)
		if l == nil {
			continue
		}
		err := s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
			const q = `UPDATE sms_carrier_states SET held_until = 0, status = '', error = NULL WHERE org_id = $1 AND carrier_id = $2 AND node = $3`
			_, err := tx.Exec(ctx, q, l.org, id, s.cfg.Node)
			return err
		})
		if err != nil {
			s.cfg.Log.Warn("lease on a carrier connection not released; it expires in 15 s", "carrier", id, "err", err)
		}
	}
}
