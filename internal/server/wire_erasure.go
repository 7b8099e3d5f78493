package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"soniq/internal/customer/erasure"
	"soniq/internal/platform/db"
)

// Erasure of numbers: the stores that hold them, and the order of their erasure.

// callsPerErasure limits the calls that one transaction erases.
const callsPerErasure = 10

// buildErasure constructs the erasure service.
func (p *Platform) buildErasure() {
	p.erasures = erasure.New(erasure.Config{DB: p.db, Jobs: p.jobs, Seal: p.seal, Now: time.Now})
	p.erasures.ParseNumber, p.erasures.InCall = p.parseNumber, p.calls.HasActiveCallWith
	p.erasures.IsOwnNumber = func(ctx context.Context, org, e164 string) (bool, error) {
		_, err := p.numbers.Owned(ctx, p.db.Read(ctx), org, e164)
		if db.IsNone(err) {
			return false, nil
		}
		return err == nil, err
	}
	p.erasures.OnDone = func(_ context.Context, org string) error { p.memory.DropIndex(org); return nil }
	p.erasures.Stores = []erasure.Store{
		{Name: "calls", Count: p.calls.CountEndedWith, Erase: p.eraseCalls},
		{Name: "callbacks", Count: p.calls.CountCallbacks, Erase: p.calls.EraseCallbacks},
		{Name: "messages", Count: p.messages.CountForNumber, Erase: p.messages.EraseForNumber},
		{Name: "submissions", Count: p.smppApps.CountForNumber, Erase: p.smppApps.EraseForNumber},
		{Name: "webhooks", Count: p.webhooks.CountWithText, Erase: p.webhooks.EraseWithText},
		{Name: "events", Count: p.outbox.CountWith, Erase: p.outbox.EraseWith},
		{Name: "memory", Count: p.memory.CountFacts, Erase: p.memory.EraseFacts},
		{Name: "contacts", Count: p.countContacts, Erase: p.eraseContacts},
		{Name: "connected systems", Count: none, Erase: func(ctx context.Context, tx db.Querier, org, phone string) (int, error) {
			return p.crm.EraseWithText(ctx, tx, org, strings.TrimPrefix(phone, "+"))
		}},
		{Name: "the audit log", Count: none, Erase: p.eraseAudit},
	}
}

// countContacts calls the contact service, which is constructed later.
func (p *Platform) countContacts(ctx context.Context, q db.Querier, org, phone string) (int, error) {
	return p.contacts.CountForNumber(ctx, q, org, phone)
}

func (p *Platform) eraseContacts(ctx context.Context, tx db.Querier, org, phone string) (int, error) {
	return p.contacts.EraseForNumber(ctx, tx, org, phone)
}

// eraseContact erases a number of a contact that is deleted, unless it is the organisation's own.
func (p *Platform) eraseContact(ctx context.Context, tx db.Querier, org, e164 string) error {
	_, err := p.numbers.Owned(ctx, tx, org, e164)
	if !db.IsNone(err) {
		return err
	}
	_, err = p.erasures.Begin(ctx, tx, org, e164, "its contact was deleted", "contacts")
	return err
}

func none(context.Context, db.Querier, string, string) (int, error) { return 0, nil }

// eraseCalls erases some calls with a number, and the data that other services keep of them.
func (p *Platform) eraseCalls(ctx context.Context, tx db.Querier, org, phone string) (int, error) {
	all, err := p.calls.EndedCallsWith(ctx, tx, org, phone, callsPerErasure)
	if err != nil {
		return 0, err
	}
	for _, c := range all {
		if err := p.eraseCall(ctx, tx, org, c.ID, phone); err != nil {
			return 0, fmt.Errorf("erase call %s: %w", c.ID, err)
		}
		db.OnCommit(tx, func() { p.analytics.CallEnded(org, c.StartedAt.Time) })
	}
	if len(all) > 0 {
		if err := p.calls.InvalidateExports(ctx, tx, org); err != nil {
			return 0, err
		}
	}
	return len(all), nil
}

func (p *Platform) eraseCall(ctx context.Context, tx db.Querier, org, id, phone string) error {
	for _, forget := range []func(context.Context, db.Querier, string, string) error{
		p.transcripts.DeleteTranscript, p.memory.DeleteCall, p.memory.DeleteCallNotes, p.webhooks.EraseCall, p.outbox.EraseCall, p.queues.EraseCall, p.voicemail.EraseCall, p.crm.EraseCall, p.voiceAgents.DeleteCall,
	} {
		if err := forget(ctx, tx, org, id); err != nil {
			return err
		}
	}
	return p.calls.Erase(ctx, tx, org, id, phone)
}

// eraseAudit removes a number from the URLs in the audit log. The rows stay.
func (p *Platform) eraseAudit(ctx context.Context, tx db.Querier, org, phone string) (int, error) {
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
