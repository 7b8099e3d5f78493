package memory

import (
	"context"
	"strings"
	"time"

	"soniq/internal/platform/db"
)

// This file remembers what people wrote: notes of calls and contacts, and text messages. They stand beside facts, and are found as those are, until
// the window of memory is over.

// The kinds of what people wrote.
const (
	KindNote = "note"
	KindSMS  = "sms"
)

// A Remark is something that somebody wrote.
type Remark struct {
	Kind   string // KindNote or KindSMS
	Of     string // the id of the note or the message
	Phone  string // of the other side; "" where it is none of ours to know
	CallID string // of a note of a call
	// ContactID is the contact that a note is on.
	ContactID string
	Text      string    // all of it
	By        string    // the id of a user or a key; "" where somebody outside wrote it
	At        time.Time // when it was written
}

// itemID is what a remark is found by.
func itemID(of string) string {
	_, id, _ := strings.Cut(of, "_")
	return "mem_" + id
}

// messageID is the message that a remark is.
func messageID(item string) string {
	_, id, _ := strings.Cut(item, "_")
	return "sms_" + id
}

// Remark remembers what somebody wrote, in the caller's transaction. What is remembered already stays as it is.
func (s *Service) Remark(ctx context.Context, tx db.Querier, org string, r Remark) error {
	if strings.TrimSpace(r.Text) == "" {
		return nil
	}
	const q = `INSERT INTO memory_facts (org_id, phone, id, text, created_by, created_at, expires_at, key, model, vector, terms, kind, call_id, contact_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) ON CONFLICT (org_id, id) DO NOTHING`
	x := s.factRow(ctx, r.Text)
	_, err := tx.Exec(ctx, q, org, r.Phone, itemID(r.Of), r.Text, r.By, db.At(r.At), db.At(r.At.Add(s.window)), x.key, x.model, x.vector.bytes(),
		encodeTerms(x.terms), r.Kind, db.Null(r.CallID), db.Null(r.ContactID))
	return wrap("remember what was written", err)
}

// ForgetRemark forgets a note or message, by its own id, in the caller's transaction.
func (s *Service) ForgetRemark(ctx context.Context, tx db.Querier, org, of string) error {
	_, err := tx.Exec(ctx, `DELETE FROM memory_facts WHERE org_id = $1 AND id = $2 AND kind <> 'fact'`, org, itemID(of))
	return wrap("forget what was written", err)
}

// ForgetNotes forgets the notes of a call, in the caller's transaction.
func (s *Service) ForgetNotes(ctx context.Context, tx db.Querier, org, callID string) error {
	_, err := tx.Exec(ctx, `DELETE FROM memory_facts WHERE org_id = $1 AND call_id = $2`, org, callID)
	return wrap("forget notes", err)
}
