package agent_test

import (
	"context"
	"testing"
	"time"

	"soniq/internal/contactcenter/agent"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

// TestOfferAnswered_ResetsIdleSince has a call that ends before the presence "busy" was published, and before the
// queue has recorded its end.
func TestOfferAnswered_ResetsIdleSince(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.register(t)
		h.wantPresence(t, "available", "")
		n := h.ring(t)
		before := h.now()
		if err := d.TxContext(h.ctx, func(ctx context.Context, tx db.Querier) error {
			return h.OfferAnswered(ctx, tx, h.org, h.ada)
		}); err != nil {
			t.Fatal(err)
		}
		h.end(t, n, h.now())
		h.wantPresence(t, "available", "")
		states, err := h.States(h.ctx, d.Read(h.ctx), h.org, []string{h.ada})
		if err != nil {
			t.Fatal(err)
		}
		if idle := states[h.ada].IdleSince; idle.Before(before) {
			t.Errorf("idle since %v, before they answered at %v", idle, before)
		}
	})
}

// TestStartWrapUp_IdleSinceEndOfCall has a call whose end is published a second after the queue recorded it. The presence "busy" is
// published before the end, or only with it.
func TestStartWrapUp_IdleSinceEndOfCall(t *testing.T) {
	t.Parallel()
	for name, busyBefore := range map[string]bool{"busy before the end": true, "busy with the end": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dbtest.Each(t, func(t *testing.T, d *db.DB) { wantIdleSinceEnd(t, d, busyBefore) })
		})
	}
}

func wantIdleSinceEnd(t *testing.T, d *db.DB, busyBefore bool) {
	t.Helper()
	h := newFixture(t, d)
	h.register(t)
	h.wantPresence(t, "available", "")
	n := h.ring(t)
	h.answerUnpublished(t, n)
	if busyBefore {
		h.publish(t)
		h.wantPresence(t, "busy", n.ID)
	}
	ended := h.now()
	if err := d.TxContext(h.ctx, func(ctx context.Context, tx db.Querier) error {
		return h.StartWrapUp(ctx, tx, h.org, h.ada, agent.WrapUpTime{CallID: n.ID, Until: ended})
	}); err != nil {
		t.Fatal(err)
	}
	h.advance(time.Second)
	h.end(t, n, ended)
	h.wantPresence(t, "available", "")
	states, err := h.States(h.ctx, d.Read(h.ctx), h.org, []string{h.ada})
	if err != nil {
		t.Fatal(err)
	}
	if idle := states[h.ada].IdleSince; idle.Sub(ended) > time.Second/2 {
		t.Errorf("idle since %v, %v after the end of the call", idle, idle.Sub(ended))
	}
}
