package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"soniq/internal/customer/erasure"
	"soniq/internal/platform/db"
)

// This file says where things about numbers are kept, and how they are erased.

// callsPerErasure is how many calls are erased in one transaction.
const callsPerErasure = 10

// buildErasure constructs the erasure service.
func (h *Platform) buildErasure() {
	h.erasures = erasure.New(erasure.Config{DB: h.db, Jobs: h.jobs, Seal: h.seal, Now: time.Now})
	h.erasures.Number, h.erasures.Busy = h.e164, h.calls.LiveWith
	h.erasures.Own = func(ctx context.Context, org, e164 string) (bool, error) {
		_, err := h.numbers.Owned(ctx, h.db.Read(ctx), org, e164)
		if db.IsNone(err) {
			return false, nil
		}
		return err == nil, err
	}
	h.erasures.Done = func(_ context.Context, org string) error { h.memory.Drop(org); return nil }
	h.erasures.Keepers = []erasure.Keeper{
		{Name: "calls", Count: h.calls.CountWith, Erase: h.eraseCalls},
		{Name: "callbacks", Count: h.calls.CountCallbacks, Erase: h.calls.EraseCallbacks},
		{Name: "messages", Count: h.messages.CountWith, Erase: h.messages.EraseWith},
		{Name: "submissions", Count: h.esme.CountWith, Erase: h.esme.EraseWith},
		{Name: "webhooks", Count: h.hooks.CountWith, Erase: h.hooks.EraseWith},
		{Name: "events", Count: h.outbox.CountWith, Erase: h.outbox.EraseWith},
		{Name: "memory", Count: h.memory.CountFacts, Erase: h.memory.EraseFacts},
		{Name: "contacts", Count: h.countContacts, Erase: h.eraseContacts},
		{Name: "connected systems", Count: none, Erase: func(ctx context.Context, tx db.Querier, org, phone string) (int, error) {
			return h.crm.EraseWith(ctx, tx, org, strings.TrimPrefix(phone, "+"))
		}},
		{Name: "the audit log", Count: none, Erase: h.eraseAudit},
	}
}

// countContacts and eraseContacts call the contact service, which is constructed later.
func (h *Platform) countContacts(ctx context.Context, q db.Querier, org, phone string) (int, error) {
	return h.contacts.CountWith(ctx, q, org, phone)
}

func (h *Platform) eraseContacts(ctx context.Context, tx db.Querier, org, phone string) (int, error) {
	return h.contacts.EraseWith(ctx, tx, org, phone)
}

// eraseContact erases a number of a contact that is deleted, unless it is the organisation's own.
func (h *Platform) eraseContact(ctx context.Context, tx db.Querier, org, e164 string) error {
	_, err := h.numbers.Owned(ctx, tx, org, e164)
	if !db.IsNone(err) {
		return err
	}
	_, err = h.erasures.Begin(ctx, tx, org, e164, "its contact was deleted", "contacts")
	return err
}

func none(context.Context, db.Querier, string, string) (int, error) { return 0, nil }

// eraseCalls erases some calls with a number, and the data that other services keep of them.
func (h *Platform) eraseCalls(ctx context.Context, tx db.Querier, org, phone string) (int, error) {
	all, err := h.calls.With(ctx, tx, org, phone, callsPerErasure)
	if err != nil {
		return 0, err
	}
	for _, c := range all {
		if err := h.eraseCall(ctx, tx, org, c.ID, phone); err != nil {
			return 0, fmt.Errorf("erase call %s: %w", c.ID, err)
		}
		db.OnCommit(tx, func() { h.counts.Ended(org, c.StartedAt.Time) })
	}
	if len(all) > 0 {
		if err := h.calls.DropExports(ctx, tx, org); err != nil {
			return 0, err
		}
	}
	return len(all), nil
}

func (h *Platform) eraseCall(ctx context.Context, tx db.Querier, org, id, phone string) error {
	for _, forget := range []func(context.Context, db.Querier, string, string) error{
		h.transcripts.Forget, h.memory.Forget, h.memory.ForgetNotes, h.hooks.EraseCall, h.outbox.EraseCall, h.queues.EraseCall, h.voicemail.EraseCall, h.crm.EraseCall, h.assistants.EraseCall,
	} {
		if err := forget(ctx, tx, org, id); err != nil {
			return err
		}
	}
	return h.calls.Erase(ctx, tx, org, id, phone)
}

// eraseAudit takes a number out of the addresses of requests. Who did what stays.
func (h *Platform) eraseAudit(ctx context.Context, tx db.Querier, org, phone string) (int, error) {
	const q = `UPDATE audit SET target = replace(replace(target, $2, '…'), $3, '…'), record_id = replace(replace(record_id, $2, '…'), $3, '…')
		WHERE org_id = $1 AND (target LIKE $4 OR record_id LIKE $4)`
	digits := strings.TrimPrefix(phone, "+")
	r, err := tx.Exec(ctx, q, org, phone, digits, "%"+digits+"%")
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	return int(n), err
}
