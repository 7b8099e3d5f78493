// Package cluster keeps the membership of the nodes that share one PostgreSQL database: a row with a lease for each, and the eviction of
// nodes whose lease is over. On SQLite one node serves, and the package does nothing.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
)

// Times of leases.
const (
	lease = 10 * time.Second // a node that does not renew for this time is evicted
	renew = time.Second
	// closing is how long the work of an evicted node is looked for, and closeInterval how often. A node that was only slow may
	// write calls until it notices its eviction.
	closing       = time.Minute
	closeInterval = 5 * time.Second
)

// Changed is the bus subject that is published when a node begins or ends to serve.
const Changed = "changed.nodes"

// Config has the dependencies of a Membership. Every field is required except those that say otherwise.
type Config struct {
	DB      *db.DB
	Bus     *bus.Bus
	Log     *slog.Logger
	Node    string
	Version string
	Work    Work
}

// Work is the work of nodes that the membership starts. Package server implements it.
type Work interface {
	// RemoveFile deletes a file or folder of this node's disk. A missing one is not an error.
	RemoveFile(name string) error
	// CloseLost closes what a lost node left: calls, queue entries, registrations and jobs. Several nodes may call it for one
	// node, so it changes everything under Lost.Guard. It may be called again for the same node.
	CloseLost(ctx context.Context, l Lost) error
	// Returned is called after this node was evicted although it was alive, and has joined again.
	Returned(ctx context.Context)
}

// Membership is the membership of this node. It is safe for concurrent use.
type Membership struct {
	cfg     Config
	epoch   atomic.Int64
	joined  atomic.Bool
	peers   atomic.Bool // other nodes serve
	cleanUp sync.Mutex  // held while files are deleted

	// The following fields belong to the goroutine of Run.
	serving map[string]bool      // nodes that served at the last look
	since   time.Time            // start of the renewals without a gap
	last    time.Time            // last renewal
	closed  map[string]time.Time // last closing of an evicted node's work
}

// New returns a membership that does nothing until Join.
func New(c Config) *Membership {
	return &Membership{cfg: c, serving: map[string]bool{}, closed: map[string]time.Time{}}
}

// now is the time of the database in microseconds since 1970. All nodes use this clock for leases.
const now = `CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)`

// IsShared reports whether other nodes may serve the same database.
func (m *Membership) IsShared() bool { return m.cfg.DB.Name() == "postgres" }

// HasPeers reports whether other nodes served at the last look.
func (m *Membership) HasPeers() bool { return m.peers.Load() }

// Join makes this node a serving one, and deletes the files whose deletion it missed. It waits until another node that closes a
// call of this one has finished. From then on no other node closes its calls, as long as Run renews the lease.
func (m *Membership) Join(ctx context.Context) error {
	if !m.IsShared() {
		return nil
	}
	const q = `INSERT INTO nodes (id, epoch, state, version, joined_at, lease_until) VALUES ($1, 1, 'serving', $2, ` + now + `, ` + now + ` + $3)
		ON CONFLICT (id) DO UPDATE SET epoch = nodes.epoch + 1, state = 'serving', version = excluded.version,
			joined_at = excluded.joined_at, lease_until = excluded.lease_until
		RETURNING epoch`
	var epoch int64
	err := m.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		return tx.QueryRow(ctx, q, m.cfg.Node, m.cfg.Version, lease.Microseconds()).Scan(&epoch)
	})
	if err != nil {
		return fmt.Errorf("join the nodes of the database: %w", err)
	}
	m.epoch.Store(epoch)
	m.joined.Store(true)
	return m.removeFiles(ctx)
}

// Leave ends the membership in order, so that other nodes take over at once. It does nothing before Join.
func (m *Membership) Leave(ctx context.Context) error {
	if !m.joined.Swap(false) {
		return nil
	}
	return m.exec(ctx, `UPDATE nodes SET state = 'left' WHERE id = $1 AND epoch = $2 AND state = 'serving'`, m.cfg.Node, m.epoch.Load())
}

// Run renews the lease and evicts nodes whose lease is over, until the context ends.
func (m *Membership) Run(ctx context.Context) {
	if !m.joined.Load() {
		return
	}
	tick := time.NewTicker(renew)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := m.look(ctx); err != nil && ctx.Err() == nil {
			m.cfg.Log.Warn("lease of this node not renewed", "err", err)
		}
	}
}

// member is a row of a node that serves or was evicted.
type member struct {
	id    string
	epoch int64
	state string
	over  bool // its lease is over
	alive time.Time
}

// view is the result of one renewal.
type view struct {
	renewed bool
	files   bool // this node has files to delete
	members []member
}

// look renews the lease, and does what the rows of the nodes ask for.
func (m *Membership) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lease)
	defer cancel()
	v, err := m.renewLease(ctx)
	if err != nil {
		return err
	}
	if !v.renewed {
		return m.rejoin(ctx)
	}
	if v.files {
		err = m.removeFiles(ctx)
	}
	m.noteRenewal()
	m.noteServing(v.members)
	for _, n := range v.members {
		if n.id != m.cfg.Node {
			err = errors.Join(err, m.judge(ctx, n))
		}
	}
	return err
}

// renewLease renews the lease and reads the rows of all nodes, in one statement.
func (m *Membership) renewLease(ctx context.Context) (v view, err error) {
	const q = `WITH mine AS (UPDATE nodes SET lease_until = ` + now + ` + $3 WHERE id = $1 AND epoch = $2 AND state = 'serving'
		RETURNING id)
		SELECT id, epoch, state, lease_until < ` + now + `, lease_until - $3, EXISTS (SELECT 1 FROM mine),
			EXISTS (SELECT 1 FROM node_file_removals WHERE node = $1)
		FROM nodes WHERE state IN ('serving', 'evicted') OR id = $1`
	rows, err := m.cfg.DB.Read(ctx).Query(ctx, q, m.cfg.Node, m.epoch.Load(), lease.Microseconds())
	if err != nil {
		return v, err
	}
	defer rows.Close()
	for rows.Next() {
		var n member
		var alive int64
		if err := rows.Scan(&n.id, &n.epoch, &n.state, &n.over, &alive, &v.renewed, &v.files); err != nil {
			return v, err
		}
		n.alive = time.UnixMicro(alive)
		v.members = append(v.members, n)
	}
	return v, rows.Err()
}

// noteRenewal notes when the renewals without a gap began.
func (m *Membership) noteRenewal() {
	at := time.Now()
	if at.Sub(m.last) > lease/2 {
		m.since = at
	}
	m.last = at
}

// noteServing publishes Changed if other nodes serve than before.
func (m *Membership) noteServing(all []member) {
	serving := map[string]bool{}
	for _, n := range all {
		serving[n.id] = n.state == "serving"
	}
	maps.DeleteFunc(serving, func(_ string, yes bool) bool { return !yes })
	m.peers.Store(len(serving) > 1)
	if !maps.Equal(serving, m.serving) {
		m.cfg.Log.Info("nodes", "serving", strings.Join(slices.Sorted(maps.Keys(serving)), " "))
		m.serving = serving
		m.cfg.Bus.Publish(Changed, nil)
	}
}

// judge evicts a node whose lease is over, and closes the work of an evicted node.
func (m *Membership) judge(ctx context.Context, n member) error {
	switch {
	case n.state == "serving" && n.over && m.mayEvict():
		return m.evict(ctx, n)
	case n.state == "evicted" && time.Since(m.closed[n.id]) > closeInterval:
		m.closed[n.id] = time.Now()
		return m.closeWork(ctx, n)
	}
	return nil
}

// mayEvict reports whether this node has renewed its own lease for a whole lease without a gap. After an outage of the database
// each node gets this time to renew.
func (m *Membership) mayEvict() bool { return time.Since(m.since) > lease }

// evict takes the epoch of a node whose lease is over. The next look closes its work.
func (m *Membership) evict(ctx context.Context, n member) error {
	const q = `UPDATE nodes SET state = 'evicted', epoch = epoch + 1 WHERE id = $1 AND epoch = $2 AND state = 'serving' AND lease_until < ` + now
	err := m.exec(ctx, q, n.id, n.epoch)
	if err == nil {
		m.cfg.Log.Warn("a node has not renewed its lease and is evicted; its calls are closed", "node", n.id, "alive", n.alive.UTC().Format(time.RFC3339))
	}
	return err
}

// closeWork closes the work of an evicted node. After the time closing the node is marked as gone.
func (m *Membership) closeWork(ctx context.Context, n member) error {
	err := m.cfg.Work.CloseLost(ctx, Lost{Node: n.id, Alive: n.alive, epoch: n.epoch, by: m})
	switch {
	case errors.Is(err, ErrNotEvicted):
		return nil
	case err != nil:
		return fmt.Errorf("close the work of node %s: %w", n.id, err)
	}
	const q = `UPDATE nodes SET state = 'gone' WHERE id = $1 AND epoch = $2 AND state = 'evicted' AND lease_until < ` + now + ` - $3`
	return m.exec(ctx, q, n.id, n.epoch, closing.Microseconds())
}

// rejoin joins again after another node has evicted this one.
func (m *Membership) rejoin(ctx context.Context) error {
	m.cfg.Log.Error("this node was evicted because it did not renew its lease in time; it joins again and ends the calls that were closed")
	if err := m.Join(ctx); err != nil {
		return err
	}
	m.noteRenewal()
	m.serving = map[string]bool{}
	m.cfg.Work.Returned(ctx)
	return nil
}

func (m *Membership) exec(ctx context.Context, q string, args ...any) error {
	return m.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		_, err := tx.Exec(ctx, q, args...)
		return err
	})
}
