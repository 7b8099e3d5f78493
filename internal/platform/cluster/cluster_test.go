package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

// node is a membership whose calls are recorded.
type node struct {
	*Membership
	lost     []Lost
	returned int
	removed  []string
}

func (n *node) RemoveFile(name string) error { n.removed = append(n.removed, name); return nil }

func (n *node) CloseLost(_ context.Context, l Lost) error { n.lost = append(n.lost, l); return nil }

func (n *node) Returned(context.Context) { n.returned++ }

// newNodes returns nodes on one database, which have joined and may evict.
func newNodes(t *testing.T, names ...string) []*node {
	t.Helper()
	address := os.Getenv("SONIQ_TEST_POSTGRES")
	if address == "" {
		t.Skip("SONIQ_TEST_POSTGRES is not set")
	}
	d, err := db.Open(t.Context(), dbtest.Postgres(t, address))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	if _, err := d.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	var all []*node
	for _, name := range names {
		n := &node{}
		n.Membership = New(Config{DB: d, Bus: bus.New(), Log: slog.New(slog.DiscardHandler), Node: name, Version: "test", Work: n})
		if err := n.Join(t.Context()); err != nil {
			t.Fatal(err)
		}
		n.since, n.last = time.Now().Add(-time.Hour), time.Now()
		all = append(all, n)
	}
	return all
}

// looks lets a node renew its lease n times.
func (n *node) looks(t *testing.T, times int) {
	t.Helper()
	for range times {
		if err := n.look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// expire ends the lease of a node.
func (n *node) expire(t *testing.T) {
	t.Helper()
	if err := n.exec(t.Context(), `UPDATE nodes SET lease_until = lease_until - $2 WHERE id = $1`, n.cfg.Node,
		(lease + time.Second).Microseconds()); err != nil {
		t.Fatal(err)
	}
}

func TestLost_WorkIsClosedUntilTheNodeReturns(t *testing.T) {
	t.Parallel()
	all := newNodes(t, "node_a", "node_b")
	a, b := all[0], all[1]
	b.looks(t, 2)
	if len(b.lost) > 0 {
		t.Fatal("a node with a lease is lost")
	}
	a.expire(t)
	b.looks(t, 2)
	if len(b.lost) != 1 || b.lost[0].Node != "node_a" {
		t.Fatalf("lost: %+v", b.lost)
	}
	l := b.lost[0]
	changed := 0
	change := func(context.Context, db.Querier) error { changed++; return nil }
	if err := l.Guard(t.Context(), change); err != nil || changed != 1 {
		t.Errorf("the work of an evicted node is not closed: %v", err)
	}
	a.looks(t, 1)
	if a.returned != 1 {
		t.Error("the evicted node does not notice")
	}
	if err := l.Guard(t.Context(), change); !errors.Is(err, ErrNotEvicted) || changed != 1 {
		t.Errorf("the work of a node that is back is closed: %v", err)
	}
	a.looks(t, 1)
	b.looks(t, 1)
	if a.returned != 1 || len(b.lost) != 1 || !b.HasPeers() {
		t.Errorf("after the return: %+v %+v", a, b)
	}
}

// A start of the node waits until another one has finished the change of a call.
func TestJoin_WaitsForClosing(t *testing.T) {
	t.Parallel()
	all := newNodes(t, "node_a", "node_b")
	a, b := all[0], all[1]
	a.expire(t)
	b.looks(t, 2)
	if len(b.lost) != 1 {
		t.Fatal("the node is not lost")
	}
	joined := make(chan error, 1)
	err := b.lost[0].Guard(t.Context(), func(context.Context, db.Querier) error {
		go func() { joined <- a.Join(context.Background()) }()
		select {
		case err := <-joined:
			return fmt.Errorf("joined while a call was closed: %w", err)
		case <-time.After(100 * time.Millisecond):
			return nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-joined; err != nil {
		t.Fatal(err)
	}
}

// After an outage of the database, the first node that reaches it does not evict those that are about to.
func TestEvict_NotRightAfterAnOutage(t *testing.T) {
	t.Parallel()
	all := newNodes(t, "node_a", "node_b")
	a, b := all[0], all[1]
	a.expire(t)
	b.last = time.Now().Add(-lease)
	b.looks(t, 3)
	a.looks(t, 1)
	if len(b.lost) > 0 || a.returned > 0 {
		t.Errorf("lost %+v, returned %d", b.lost, a.returned)
	}
}

func TestLeave_IsNoLoss(t *testing.T) {
	t.Parallel()
	all := newNodes(t, "node_a", "node_b")
	a, b := all[0], all[1]
	b.looks(t, 1)
	if err := a.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.expire(t)
	b.looks(t, 2)
	if len(b.lost) > 0 || b.HasPeers() {
		t.Errorf("lost %+v", b.lost)
	}
}

func TestRemoveElsewhere_ServingAndStoppedNodes(t *testing.T) {
	t.Parallel()
	all := newNodes(t, "node_a", "node_b", "node_c")
	a, b, c := all[0], all[1], all[2]
	if err := c.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := a.RemoveElsewhere(t.Context(), "org_1/call.wav"); err != nil {
			t.Fatal(err)
		}
	}
	a.looks(t, 2)
	b.looks(t, 2)
	if err := c.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"org_1/call.wav"}
	if len(a.removed) > 0 || !slices.Equal(b.removed, want) || !slices.Equal(c.removed, want) {
		t.Errorf("removed: %v, %v, %v", a.removed, b.removed, c.removed)
	}
}

// In a copied database the nodes of the original are evicted at once, and the node of the copy closes their work.
func TestEvictAll_NodeOfCopyClosesTheirWork(t *testing.T) {
	t.Parallel()
	a := newNodes(t, "node_a", "node_b")[0]
	if err := a.cfg.DB.Tx(t.Context(), func(tx db.Querier) error { return EvictAll(t.Context(), tx) }); err != nil {
		t.Fatal(err)
	}
	c := &node{}
	c.Membership = New(Config{DB: a.cfg.DB, Bus: bus.New(), Log: slog.New(slog.DiscardHandler), Node: "node_c", Version: "test", Work: c})
	if err := c.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.looks(t, 1)
	var lost []string
	for _, l := range c.lost {
		lost = append(lost, l.Node)
	}
	if slices.Sort(lost); !slices.Equal(lost, []string{"node_a", "node_b"}) || c.HasPeers() {
		t.Errorf("lost %v, peers %v", lost, c.HasPeers())
	}
}
