package memory

import (
	"context"
	"strings"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/personal"
)

// Notes of calls and contacts, and text messages. They are stored beside facts and are searched like them, until the
// window of the call memory ends.

// Kinds of text entries.
const (
	KindNote = "note"
	KindSMS  = "sms"
)

// TextEntry is a note or a text message.
type TextEntry struct {
	Kind   string // KindNote or KindSMS
	Of     string // id of the note or the message
	Phone  string // number of the other side; "" if there is none
	CallID string // of a note of a call
	// ContactID is the contact of a note.
	ContactID string
	Text      string    // full text
	By        string    // id of a user or API key; "" if the other side wrote it
	At        time.Time // time of writing
}

// itemID returns the id of the entry for a note or message.
func itemID(of string) string {
	_, id, _ := strings.Cut(of, "_")
	return "mem_" + id
}

// messageID returns the id of the message for an entry.
func messageID(item string) string {
	_, id, _ := strings.Cut(item, "_")
	return "sms_" + id
}

// AddText stores a note or message, in the caller's transaction. An existing entry is not changed.
func (s *Service) AddText(ctx context.Context, tx db.Querier, org string, r TextEntry) error {
	if strings.TrimSpace(r.Text) == "" {
		return nil
	}
	const q = `INSERT INTO memory_facts (org_id, phone, id, text, created_by, created_at, expires_at, key, model, vector, terms, kind,
		call_id, contact_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) ON CONFLICT (org_id, id) DO NOTHING`
	policy, err := s.redactions.Redaction(ctx, org)
	if err != nil {
		return err
	}
	r.Text = policy.Text(r.Text)
	x := s.factRow(ctx, r.Text)
	_, err = tx.Exec(ctx, q, org, r.Phone, itemID(r.Of), r.Text, r.By, db.At(r.At), db.At(r.At.Add(s.window)), x.key, x.model,
		x.vector.bytes(), encodeTerms(x.terms), r.Kind, db.Null(r.CallID), db.Null(r.ContactID))
	return wrapError("remember what was written", err)
}

// DeleteText deletes the entry of a note or message, by the id of that, in the caller's transaction.
func (s *Service) DeleteText(ctx context.Context, tx db.Querier, org, of string) error {
	_, err := tx.Exec(ctx, `DELETE FROM memory_facts WHERE org_id = $1 AND id = $2 AND kind <> 'fact'`, org, itemID(of))
	return wrapError("forget what was written", err)
}

// DeleteCallNotes deletes the notes of a call, in the caller's transaction.
func (s *Service) DeleteCallNotes(ctx context.Context, tx db.Querier, org, callID string) error {
	_, err := tx.Exec(ctx, `DELETE FROM memory_facts WHERE org_id = $1 AND call_id = $2`, org, callID)
	return wrapError("forget notes", err)
}

// ExportCall writes the memory of a call to an export: its record, its passages and its notes.
func (s *Service) ExportCall(ctx context.Context, q db.Querier, org, callID string, w personal.Writer) error {
	for kind, text := range map[string]string{
		"memory_calls": `SELECT * FROM memory_calls WHERE org_id = $1 AND call_id = $2`,
		"memory_items": `SELECT * FROM memory_items WHERE org_id = $1 AND call_id = $2 ORDER BY key`,
		"memory_facts": `SELECT * FROM memory_facts WHERE org_id = $1 AND call_id = $2 ORDER BY id`,
	} {
		if err := personal.Rows(ctx, q, w, kind, text, org, callID); err != nil {
			return err
		}
	}
	return nil
}

// ExportContact exports the notes of a contact.
func (s *Service) ExportContact(ctx context.Context, q db.Querier, org, id string, w personal.Writer) error {
	const text = `SELECT * FROM memory_facts WHERE org_id = $1 AND contact_id = $2 ORDER BY id`
	return personal.Rows(ctx, q, w, "memory_facts", text, org, id)
}
