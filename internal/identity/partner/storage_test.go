package partner_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op"
)

// storeAudio inserts an audio file of a size, after the same check as package audio.
func (h *fixture) storeAudio(org string, size int64) error {
	return h.d.Tx(ctx, func(tx db.Querier) error {
		if err := h.orgs.ReserveStorage(ctx, tx, org, size); err != nil {
			return err
		}
		const q = `INSERT INTO audio (org_id, id, name, kind, source, duration_ms, format, size_bytes, blob, created_at)
			VALUES ($1, $2, 'x', 'prompt', 'upload', 1, 'wav', $3, 'x', 0)`
		_, err := tx.Exec(ctx, q, org, db.NewID("aud"), size)
		return err
	})
}

func TestQuota_StorageAddedConcurrently(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.createChild(`,"limits":{"storage_gb":1}`)
		other := h.createChild(`,"limits":{"storage_gb":1}`)
		var all sync.WaitGroup
		errs := make([]error, 6)
		for i := range errs {
			all.Go(func() { errs[i] = h.storeAudio(id, 250_000_000) })
		}
		all.Wait()
		kept := 0
		for _, err := range errs {
			var e *op.Error
			switch {
			case err == nil:
				kept++
			case !errors.As(err, &e) || e.Code != "plan_limit" || e.Extra["limit"] != "storage_gb" || e.Extra["used"] != 1.0:
				t.Errorf("refused with %v", err)
			}
		}
		if kept != 4 {
			t.Errorf("%d of 4 files were kept", kept)
		}
		if used := h.do("GET", "/partners/"+id, nil).Want(200).At("usage.storage_gb"); used != 1.0 {
			t.Errorf("used: %v", used)
		}
		var e *op.Error
		if err := h.orgs.CheckStorage(ctx, id); !errors.As(err, &e) || e.Code != "plan_limit" {
			t.Errorf("a full organisation has room: %v", err)
		}
		if err := h.orgs.CheckStorage(ctx, other); err != nil {
			t.Errorf("another organisation has none: %v", err)
		}
		must(t, d.Tx(ctx, func(tx db.Querier) error {
			_, err := tx.Exec(ctx, `DELETE FROM audio WHERE org_id = $1`, id)
			return err
		}))
		h.advance(time.Minute)
		if err := h.orgs.CheckStorage(ctx, id); err != nil {
			t.Errorf("an organisation that made room has none: %v", err)
		}
		if err := h.storeAudio(h.org, 5_000_000_000); err != nil {
			t.Errorf("without a limit: %v", err)
		}
	})
}
