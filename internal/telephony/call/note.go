package call

import (
	"cmp"
	"context"
	"fmt"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/observe"
	"soniq/internal/platform/op"
)

// Note is a note that a user or a program wrote on a call.
type Note struct {
	ID        string     `json:"id" example:"note_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	CallID    *string    `json:"call_id"`
	ContactID *string    `json:"contact_id"`
	Body      string     `json:"body"`
	Pinned    bool       `json:"pinned"`
	Author    Author     `json:"author"`
	CRMSync   []NoteSync `json:"crm_sync" nullable:"false" doc:"How far it has come to each connected system"`
	CreatedAt db.Time    `json:"created_at"`
}

// NoteSync is the synchronisation state of a note in one connected CRM system.
type NoteSync struct {
	ConnectionID string  `json:"connection_id"`
	Provider     string  `json:"provider"`
	Status       string  `json:"status" enum:"pending,synced,failed,skipped"`
	ExternalID   *string `json:"external_id"`
	Error        *string `json:"error"`
}

// Author is the author of a note.
type Author struct {
	Type string `json:"type" enum:"user,api_key,mcp"`
	ID   string `json:"id"`
	Name string `json:"name"`
}

// maxNotes is the maximum number of notes of a call.
const maxNotes = 1000

// AuthorOf returns the author for the credential of the request: an MCP client, a user or an API key. The name is that of the user in a
// browser session, else that of the credential.
func AuthorOf(ctx context.Context) Author {
	p, _ := access.From(ctx)
	if v, ok := op.ToolCallOf(ctx); ok {
		return Author{Type: "mcp", ID: p.KeyID, Name: v.Client}
	}
	if p.UserID != "" {
		return Author{Type: "user", ID: p.UserID, Name: cmp.Or(p.UserName, p.KeyName)}
	}
	return Author{Type: "api_key", ID: p.KeyID, Name: p.KeyName}
}

// insertPurposeNote inserts the reason of a placed call as its first note.
func (s *Service) insertPurposeNote(ctx context.Context, tx db.Querier, n New) error {
	if n.Purpose == "" {
		return nil
	}
	a := n.By
	if a.ID == "" {
		a = Author{Type: "user", ID: n.UserID}
	}
	return s.insertNote(ctx, tx, n.Org, newNote{callID: n.ID, phone: externalNumber(n.Direction, n.From, n.To), body: n.Purpose, author: a},
		db.NewID("note"), db.At(n.StartedAt))
}

type newNote struct {
	callID, body    string
	phone           string // external number of the call
	pinned, crmSync bool
	author          Author
}

func (s *Service) insertNote(ctx context.Context, tx db.Querier, org string, n newNote, id string, at db.Time) error {
	policy, err := s.cfg.Redactions.Redaction(ctx, org)
	if err != nil {
		return err
	}
	n.body = policy.Text(n.body)
	const q = `INSERT INTO notes (org_id, id, call_id, body, pinned, crm_sync, author_type, author_id, author_name, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
	_, err = tx.Exec(ctx, q, org, id, n.callID, n.body, n.pinned, n.crmSync, n.author.Type, n.author.ID, n.author.Name, at)
	if err != nil {
		return fmt.Errorf("insert note: %w", err)
	}
	note := Note{ID: id, CallID: &n.callID, Body: n.body, Pinned: n.pinned, Author: n.author, CreatedAt: at}
	err = observe.Each(s.observers.notes, func(o NoteObserver) error { return o.NoteWritten(ctx, tx, org, note, n.phone, n.crmSync) })
	if err != nil {
		return err
	}
	return countNotes(ctx, tx, org, n.callID)
}

func countNotes(ctx context.Context, tx db.Querier, org, callID string) error {
	const q = `UPDATE calls SET notes_count = (SELECT count(*) FROM notes WHERE org_id = $1 AND call_id = $2)
		WHERE org_id = $1 AND id = $2`
	_, err := tx.Exec(ctx, q, org, callID)
	return err
}
