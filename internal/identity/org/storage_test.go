package org_test

import (
	"context"
	"testing"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

// TestReserveStorage_OneAfterTheOther reserves storage in two transactions of an organisation without a quota. The second
// waits until the first has ended, because callers count other things as well.
func TestReserveStorage_OneAfterTheOther(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := org.New(d, bus.New(), time.Now)
		o, err := s.Create(t.Context(), "Acme", "GB")
		if err != nil {
			t.Fatal(err)
		}
		reserved := make(chan error, 1)
		err = d.TxContext(t.Context(), func(ctx context.Context, tx db.Querier) error {
			if err := s.ReserveStorage(ctx, tx, o.ID, 1); err != nil {
				return err
			}
			go func() {
				reserved <- d.TxContext(t.Context(), func(ctx context.Context, tx db.Querier) error {
					return s.ReserveStorage(ctx, tx, o.ID, 1)
				})
			}()
			select {
			case err := <-reserved:
				t.Errorf("the second transaction reserved storage during the first: %v", err)
				reserved <- err
			case <-time.After(200 * time.Millisecond): // a transaction that does not wait takes some milliseconds
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-reserved; err != nil {
			t.Error(err)
		}
	})
}
