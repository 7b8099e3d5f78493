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
type hasty struct {
	k    *desk
	work sync.WaitGroup
}

func (h *hasty) Send(_ context.Context, o sms.Outgoing) (sms.Result, error) {
	var ids []string
	for i := range 3 {
		id := fmt.Sprintf("%s-%d", o.Reference, i)
		ids = append(ids, id)
		h.work.Go(func() {
			if err := h.k.Receipt(context.Background(), o.Org, "hasty", id, sms.Result{Status: sms.Delivered}); err != nil {
				h.k.t.Error(err)
			}
		})
	}
	return sms.Result{Status: sms.Sent, IDs: ids}, nil
}

func (h *hasty) Ask(context.Context, sms.Outgoing) (sms.Result, error) {
	return sms.Result{}, sms.ErrUnknown
}

// Rates returns limits so high that all messages are sent at once.
func (h *hasty) Rates() (all, number float64) { return 5000, 5000 }

func TestReceiptsOfPartsThatComeAtOnceLoseNone(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := build(t, d)
		h := &hasty{k: k}
		k.Carriers["hasty"] = h
		k.Route = func(_ context.Context, _ string, _ sms.OwnNumber, to string) (string, string, error) {
			return "hasty", to, nil
		}
		k.work()
		var ids []string
		for i := range 40 {
			ids = append(ids, k.post(fmt.Sprintf("+120255501%02d", i), "Hello"))
		}
		for _, id := range ids {
			k.becomes(id, "delivered")
		}
		h.work.Wait()
	})
}
