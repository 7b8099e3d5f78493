package event_test

import (
	"context"
	"testing"
	"time"

	"soniq/bus"
	"soniq/db"
	"soniq/db/dbtest"
	"soniq/event"
	"soniq/org"
)

func TestOldEventsGoOnceTheyWereRead(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx, b := context.Background(), bus.New()
		o, err := org.New(d, b, time.Now).Create(ctx, "Test", "US")
		if err != nil {
			t.Fatal(err)
		}
		at := time.Now().AddDate(0, 0, -40)
		outbox := &event.Outbox{DB: d, Bus: b, Now: func() db.Time { return db.At(at) }}
		for i := range 3 {
			if i == 2 {
				at = time.Now()
			}
			err := d.Tx(ctx, func(tx db.Querier) error {
				return outbox.Publish(ctx, tx, o.ID, event.UserCreated{UserID: "usr_1", OrgID: o.ID})
			})
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 { // only the first is numbered
				number(t, d, o.ID)
			}
		}
		gone, err := outbox.Sweep(ctx, time.Now().AddDate(0, 0, -30))
		if err != nil || gone != 1 {
			t.Errorf("%d events went (%v), want the one that was old and numbered", gone, err)
		}
	})
}

func number(t *testing.T, d *db.DB, org string) {
	t.Helper()
	err := d.Tx(context.Background(), func(tx db.Querier) error {
		_, err := tx.Exec(context.Background(), `UPDATE events SET sequence = 1 WHERE org_id = $1`, org)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
