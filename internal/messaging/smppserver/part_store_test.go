package smppserver

import (
	"context"
	"fmt"
	"testing"
	"time"

	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/protocol/smpp"
)

// TestExpired_ReturnsMessagesWhole lets more parts expire at once than one call reads. Each returned message has all its
// stored parts, and every message is returned once the earlier ones are done.
func TestExpired_ReturnsMessagesWhole(t *testing.T) {
	t.Parallel()
	const messages, parts = 12, 120
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := partStore{s: &Service{cfg: Config{DB: d, Clock: clock.System()}}}
		err := d.Tx(t.Context(), func(tx db.Querier) error {
			const q = `INSERT INTO orgs (id, path, environment, name, plan, status, country, timezone, language, settings, created_at, updated_at)
				VALUES ('org_a', 'org_a', 'test', 'a', 'free', 'active', 'US', 'UTC', 'en', '{}', 0, 0)`
			if _, err := tx.Exec(t.Context(), q); err != nil {
				return err
			}
			const app = `INSERT INTO sms_applications (org_id, id, name, system_id, password, enabled, numbers, max_binds, rate_per_second,
				default_alphabet, created_at, updated_at) VALUES ('org_a', 'app_a', 'a', 'a', '', TRUE, '[]', 1, 1, '', 0, 0)`
			if _, err := tx.Exec(t.Context(), app); err != nil {
				return err
			}
			return addParts(t.Context(), tx, p, messages, parts)
		})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for round := 0; len(seen) < messages; round++ {
			late, err := p.Expired(t.Context(), time.Now().Add(time.Minute))
			if err != nil || len(late) == 0 {
				t.Fatalf("round %d: %d messages, %v; %d so far", round, len(late), err, len(seen))
			}
			for _, m := range late {
				if key := m[0].Key.To; len(m) != parts || seen[key] {
					t.Errorf("round %d: message %s has %d parts of %d; returned before: %v", round, key, len(m), parts, seen[key])
				}
				seen[m[0].Key.To] = true
				if err := p.Done(t.Context(), m[0].Key, true); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// addParts stores the first parts of messages that have one part more.
func addParts(ctx context.Context, tx db.Querier, p partStore, messages, parts int) error {
	for m := range messages {
		k := smpp.Key{Account: "org_a app_a", From: "1", To: fmt.Sprint(m), Segment: smpp.Segment{Total: uint8(parts + 1)}}
		for n := range parts {
			f := smpp.Fragment{Key: k, Sequence: uint8(n + 1), MessageID: fmt.Sprintf("%d-%d", m, n)}
			if err := p.insert(ctx, tx, "org_a", "app_a", partKey(k), f); err != nil {
				return err
			}
		}
	}
	return nil
}
