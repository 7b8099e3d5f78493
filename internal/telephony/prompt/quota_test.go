package prompt_test

import (
	"context"
	"testing"

	"soniq/internal/identity/org"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

func TestAudio_StorageLimitRefused(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		limit := func(gb int) {
			t.Helper()
			if err := h.orgs.SetPlans(context.Background(),
				org.Plans{Organizations: map[string]org.Quota{h.org: {StorageGB: &gb}}}); err != nil {
				t.Fatal(err)
			}
		}
		limit(1)
		first := h.upload(h.wav).Want(201).Text("id")
		// The gigabyte is used up except for less than the size of this file.
		err := d.Tx(context.Background(), func(tx db.Querier) error {
			_, err := tx.Exec(context.Background(), `UPDATE audio SET size_bytes = $2 WHERE org_id = $1`, h.org, 1_000_000_000-len(h.wav)+1)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		h.upload(h.wav).Want(403).Refused("plan_limit")
		a := h.do("POST", "/audio", map[string]any{"text": "Hello."}).Want(403).Refused("plan_limit")
		if a.Text("limit") != "storage_gb" || a.At("allowed") != 1.0 || a.At("used") != 1.0 {
			t.Errorf("refused with %s", a.Bytes)
		}
		if n := h.storedFiles(t); n != 1 {
			t.Errorf("%d files are kept", n)
		}
		h.do("DELETE", "/audio/"+first, nil).Want(204)
		h.upload(h.wav).Want(201)
	})
}
