package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"soniq/internal/customer/erasure"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/personal"
)

// Erasure and export of numbers: the stores that hold them, and their order.

// callsPerErasure limits the calls that one transaction erases.
const callsPerErasure = 10

// buildErasure constructs the erasure service. All stores exist.
func (p *Platform) buildErasure(now func() time.Time) {
	stores := []erasure.NamedStore{
		{Name: "calls", Store: numberStore{p.calls.CountEndedWith, p.eraseCalls, p.exportCalls}},
		{Name: "tags", Store: numberStore{p.calls.CountTagsWith, p.calls.EraseTagsWith, p.calls.ExportTagsWith}},
		{Name: "callbacks", Store: numberStore{p.callbacks.CountForNumber, p.callbacks.EraseForNumber, p.callbacks.ExportForNumber}},
		{Name: "messages", Store: numberStore{p.messages.CountForNumber, p.messages.EraseForNumber, p.messages.ExportForNumber}},
		{Name: "submissions", Store: numberStore{p.smppApps.CountForNumber, p.smppApps.EraseForNumber, p.smppApps.ExportForNumber}},
		{Name: "webhooks", Store: numberStore{p.webhooks.CountWithText, p.webhooks.EraseWithText, p.webhooks.ExportWithText}},
		{Name: "events", Store: numberStore{p.outbox.CountWith, p.outbox.EraseWith, p.outbox.ExportWith}},
		{Name: "memory", Store: numberStore{p.memory.CountFacts, p.memory.EraseFacts, p.memory.ExportFacts}},
		{Name: "contacts", Store: numberStore{p.contacts.CountForNumber, p.contacts.EraseForNumber, p.exportContacts}},
		{Name: "connected systems", Store: numberStore{none, p.eraseSynced, p.exportSynced}},
		{Name: "the audit log", Store: numberStore{none, p.eraseAudit, p.exportAudit}},
	}
	p.erasures = erasure.New(erasure.Config{DB: p.db, Jobs: p.jobs, Seal: p.seal, Numbers: erasureNumbers{p}, Calls: p.calls,
		Stores: stores, Clock: clock.Func(now), Files: p.files, Links: p.links(now), StorageQuota: p.orgs, Log: p.log,
		MayDelete: p.clock.MayJobDelete})
	p.erasures.Observe(memoryIndex{p})
}

// numberStore adapts functions of a package to erasure.Store.
type numberStore struct {
	count, erase func(ctx context.Context, q db.Querier, org, phone string) (int, error)
	export       func(ctx context.Context, q db.Querier, org, phone string, w personal.Writer) error
}

// Count implements erasure.Store.
func (s numberStore) Count(ctx context.Context, q db.Querier, org, phone string) (int, error) {
	return s.count(ctx, q, org, phone)
}

// Erase implements erasure.Store.
func (s numberStore) Erase(ctx context.Context, tx db.Querier, org, phone string) (int, error) {
	return s.erase(ctx, tx, org, phone)
}

// Export implements erasure.Store.
func (s numberStore) Export(ctx context.Context, q db.Querier, org, phone string, w personal.Writer) error {
	return s.export(ctx, q, org, phone, w)
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
	for _, d := range p.callData() {
		if err := d.erase(ctx, tx, org, id, phone); err != nil {
			return err
		}
	}
	return nil
}

// callData erases and exports the data of a call that one package stores.
type callData struct {
	erase  func(ctx context.Context, tx db.Querier, org, callID, phone string) error
	export func(ctx context.Context, q db.Querier, org, callID string, w personal.Writer) error
}

// callData returns the data of a call that is erased and exported, in this order.
func (p *Platform) callData() []callData {
	return []callData{
		{whole(p.transcripts.DeleteTranscript), p.transcripts.ExportCall},
		{whole(p.eraseCallMemory), p.memory.ExportCall},
		{whole(p.webhooks.EraseCall), p.webhooks.ExportCall},
		{whole(p.outbox.EraseCall), p.outbox.ExportCall},
		{whole(p.queues.EraseCall), p.queues.ExportCall},
		{whole(p.voicemail.EraseCall), p.voicemail.ExportCall},
		{whole(p.crm.EraseCall), p.crm.ExportCall},
		{whole(p.voiceAgents.DeleteCall), p.voiceAgents.ExportCall},
		{p.calls.Erase, p.exportCallRecord},
	}
}

// whole returns the erasure of everything that a package stores of a call, whichever number is erased.
func whole(erase func(context.Context, db.Querier, string, string) error) func(context.Context, db.Querier, string, string, string) error {
	return func(ctx context.Context, tx db.Querier, org, callID, _ string) error {
		return erase(ctx, tx, org, callID)
	}
}

func (p *Platform) eraseCallMemory(ctx context.Context, tx db.Querier, org, id string) error {
	if err := p.memory.DeleteCall(ctx, tx, org, id); err != nil {
		return err
	}
	return p.memory.DeleteCallNotes(ctx, tx, org, id)
}

// callsPerExport limits the calls that are found at once.
const callsPerExport = 500

// exportCalls exports the calls with a number, and the data that other services keep of them.
func (p *Platform) exportCalls(ctx context.Context, q db.Querier, org, phone string, w personal.Writer) error {
	for after := ""; ; {
		ids, err := p.calls.CallsToExport(ctx, q, org, phone, after, callsPerExport)
		if err != nil {
			return err
		}
		for _, id := range ids {
			for _, d := range p.callData() {
				if err := d.export(ctx, q, org, id, w); err != nil {
					return fmt.Errorf("export call %s: %w", id, err)
				}
			}
			after = id
		}
		if len(ids) < callsPerExport {
			return nil
		}
	}
}

// exportCallRecord exports the record of a call and its recordings.
func (p *Platform) exportCallRecord(ctx context.Context, q db.Querier, org, id string, w personal.Writer) error {
	if err := p.calls.ExportCall(ctx, q, org, id, w); err != nil {
		return err
	}
	return p.recordings.ExportCall(ctx, q, org, id, w)
}

// exportContacts exports the contacts with a number, and the data that other services keep of them.
func (p *Platform) exportContacts(ctx context.Context, q db.Querier, org, phone string, w personal.Writer) error {
	if err := p.contacts.ExportForNumber(ctx, q, org, phone, w); err != nil {
		return err
	}
	ids, err := p.contacts.ContactsWithNumber(ctx, q, org, phone)
	if err != nil {
		return err
	}
	for _, id := range ids {
		for _, export := range []func(context.Context, db.Querier, string, string, personal.Writer) error{
			p.crm.ExportContact, p.memory.ExportContact,
		} {
			if err := export(ctx, q, org, id, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// exportSynced exports error texts of connected systems that have the number.
func (p *Platform) exportSynced(ctx context.Context, q db.Querier, org, phone string, w personal.Writer) error {
	return p.crm.ExportWithText(ctx, q, org, strings.TrimPrefix(phone, "+"), w)
}

// auditWith selects entries of the audit log with digits in their URL.
const auditWith = `org_id = $1 AND (target LIKE $2 OR record_id LIKE $2)`

// eraseAudit removes a number from the URLs in the audit log. The rows stay.
func (p *Platform) eraseAudit(ctx context.Context, tx db.Querier, org, phone string) (int, error) {
	const q = `UPDATE audit SET target = replace(replace(target, $3, '…'), $4, '…'), record_id = replace(replace(record_id, $3, '…'), $4,
		'…')
		WHERE ` + auditWith
	digits := strings.TrimPrefix(phone, "+")
	r, err := tx.Exec(ctx, q, org, "%"+digits+"%", phone, digits)
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	return int(n), err
}

// exportAudit exports the entries of the audit log with a number in their URL.
func (p *Platform) exportAudit(ctx context.Context, q db.Querier, org, phone string, w personal.Writer) error {
	const text = `SELECT id, at, operation, target, record_id FROM audit WHERE ` + auditWith + ` ORDER BY id`
	return personal.Rows(ctx, q, w, "audit", text, org, "%"+strings.TrimPrefix(phone, "+")+"%")
}
