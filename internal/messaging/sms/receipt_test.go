package sms_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"soniq/internal/messaging/sms"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

// earlyReceiptCarrier sends the receipts for the three parts of a message in parallel, while Send returns.
type earlyReceiptCarrier struct {
	fixture *fixture
	pending sync.WaitGroup
}

func (h *earlyReceiptCarrier) Send(_ context.Context, o sms.Outgoing) (sms.Result, error) {
	var ids []string
	for i := range 3 {
		id := fmt.Sprintf("%s-%d", o.Reference, i)
		ids = append(ids, id)
		h.pending.Go(func() {
			if err := h.fixture.Receipt(context.Background(), o.Org, "hasty", id, sms.Result{Status: sms.Delivered}); err != nil {
				h.fixture.t.Error(err)
			}
		})
	}
	return sms.Result{Status: sms.Sent, IDs: ids}, nil
}

func (h *earlyReceiptCarrier) QueryStatus(context.Context, sms.Outgoing) (sms.Result, error) {
	return sms.Result{}, sms.ErrOutcomeUnknown
}

// Rates returns limits so high that all messages are sent at once.
func (h *earlyReceiptCarrier) Rates() (all, number float64) { return 5000, 5000 }

func TestReceipt_ConcurrentParts(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newFixture(t, d)
		h := &earlyReceiptCarrier{fixture: k}
		k.BuiltIn["hasty"] = h
		k.fake.carrier = "hasty"
		k.startJobs()
		var ids []string
		for i := range 40 {
			ids = append(ids, k.sendMessage(fmt.Sprintf("+120255501%02d", i), "Hello"))
		}
		for _, id := range ids {
			k.waitStatus(id, "delivered")
		}
		h.pending.Wait()
	})
}
