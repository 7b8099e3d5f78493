package server

import (
	"context"
	"fmt"
	"strings"

	"soniq/internal/customer/erasure"
	"soniq/internal/platform/db"
)

// Erasure of numbers: the stores that hold them, and the order of their erasure.

// callsPerErasure limits the calls that one transaction erases.
const callsPerErasure = 10

// buildErasure constructs the erasure service. All stores exist.
func (p *Platform) buildErasure() {
	stores := []erasure.NamedStore{
		{Name: "calls", Store: numberStore{p.calls.CountEndedWith, p.eraseCalls}},
		{Name: "tags", Store: numberStore{p.calls.CountTagsWith, p.calls.EraseTagsWith}},
		{Name: "callbacks", Store: numberStore{p.callbacks.CountForNumber, p.callbacks.EraseForNumber}},
		{Name: "messages", Store: numberStore{p.messages.CountForNumber, p.messages.EraseForNumber}},
		{Name: "submissions", Store: numberStore{p.smppApps.CountForNumber, p.smppApps.EraseForNumber}},
		{Name: "webhooks", Store: numberStore{p.webhooks.CountWithText, p.webhooks.EraseWithText}},
		{Name: "events", Store: numberStore{p.outbox.CountWith, p.outbox.EraseWith}},
		{Name: "memory", Store: numberStore{p.memory.CountFacts, p.memory.EraseFacts}},
		{Name: "contacts", Store: numberStore{p.contacts.CountForNumber, p.contacts.EraseForNumber}},
		{Name: "connected systems", Store: numberStore{none, p.eraseSynced}},
		{Name: "the audit log", Store: numberStore{none, p.eraseAudit}},
	}
	p.erasures = erasure.New(erasure.Config{DB: p.db, Jobs: p.jobs, Seal: p.seal, Numbers: erasureNumbers{p}, Calls: p.calls,
		Stores: stores})
	p.erasures.Observe(memoryIndex{p})
}

// numberStore adapts two functions of a package to erasure.Store.
type numberStore struct {
	count, erase func(ctx context.Context, q db.Querier, org, phone string) (int, error)
}

// Count implements erasure.Store.
func (s numberStore) Count(ctx context.Context, q db.Querier, org, phone string) (int, error) {
	return s.count(ctx, q, org, phone)
}

// Erase implements erasure.Store.
func (s numberStore) Erase(ctx context.Context, tx db.Querier, org, phone string) (int, error) {
	return s.erase(ctx, tx, org, phone)
}

// none is the count of a store whose items are not counted.
func none(context.Context, db.Querier, string, string) (int, error) { return 0, nil }

// erasureNumbers implements erasure.Numbers.
type erasureNumbers struct{ p *Platform }

// ParseNumber implements erasure.Numbers.
func (n erasureNumbers) ParseNumber(ctx context.Context, org, text string) (string, bool, error) {
	return n.p.parseNumber(ctx, org, text)
}

// IsOwnNumber implements erasure.Numbers.
func (n erasureNumbers) IsOwnNumber(ctx context.Context, org, e164 string) (bool, error) {
	_, err := n.p.numbers.Owned(ctx, n.p.db.Read(ctx), org, e164)
	if db.IsNone(err) {
		return false, nil
	}
	return err == nil, err
}

// memoryIndex drops the search index of an organisation when a number is erased.
type memoryIndex struct{ p *Platform }

// NumberErased implements erasure.DoneObserver.
func (m memoryIndex) NumberErased(_ context.Context, org string) error {
	m.p.memory.DropIndex(org)
	return nil
}

// eraseSynced erases error texts of connected systems that have the number.
func (p *Platform) eraseSynced(ctx context.Context, tx db.Querier, org, phone string) (int, error) {
	return p.crm.EraseWithText(ctx, tx, org, strings.TrimPrefix(phone, "+"))
}

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
		if err := p.cdrs.InvalidateExports(ctx, tx, org); err != nil {
			return 0, err
		}
	}
	return len(all), nil
}

func (p *Platform) eraseCall(ctx context.Context, tx db.Querier, org, id, phone string) error {
	for _, forget := range []func(context.Context, db.Querier, string, string) error{
		p.transcripts.DeleteTranscript, p.memory.DeleteCall, p.memory.DeleteCallNotes, p.webhooks.EraseCall, p.outbox.EraseCall,
		p.queues.EraseCall, p.voicemail.EraseCall, p.crm.EraseCall, p.voiceAgents.DeleteCall,
	} {
		if err := forget(ctx, tx, org, id); err != nil {
			return err
		}
	}
	return p.calls.Erase(ctx, tx, org, id, phone)
}

// eraseAudit removes a number from the URLs in the audit log. The rows stay.
func (p *Platform) eraseAudit(ctx context.Context, tx db.Querier, org, phone string) (int, error) {
	const q = `UPDATE audit SET target = replace(replace(target, $2, '…'), $3, '…'), record_id = replace(replace(record_id, $2, '…'), $3,
		'…')
		WHERE org_id = $1 AND (target LIKE $4 OR record_id LIKE $4)`
	digits := strings.TrimPrefix(phone, "+")
	r, err := tx.Exec(ctx, q, org, phone, digits, "%"+digits+"%")
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	return int(n), err
}
