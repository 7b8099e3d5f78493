package contact

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/observe"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/call"
)

// NoteIn is the request of contacts.notes.add.
type NoteIn struct {
	ID   string `path:"id" maxLength:"40"`
	Body struct {
		Body    string `json:"body" doc:"1 to 10000 characters"`
		CRMSync *bool  `json:"crm_sync,omitempty" default:"true" doc:"Write it to the connected systems too"`
		Pinned  bool   `json:"pinned,omitempty" doc:"Shown first"`
	}
}

// maxNotes bounds the notes of a contact.
const maxNotes = 1000

// AddNote adds a note to a contact.
func (s *Service) AddNote(ctx context.Context, in *NoteIn) (*op.Out[call.Note], error) {
	org := access.Org(ctx)
	policy, err := s.cfg.Orgs.Redaction(ctx, org)
	if err != nil {
		return nil, err
	}
	note := call.Note{ID: db.NewID("note"), ContactID: &in.ID, Body: policy.Text(in.Body.Body), Pinned: in.Body.Pinned,
		Author: call.AuthorOf(ctx), CRMSync: []call.NoteSync{}, CreatedAt: db.At(s.cfg.Clock.Now())}
	err = s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		c, err := s.find(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		if n := utf8.RuneCountInString(note.Body); n > 10_000 || strings.TrimSpace(note.Body) == "" {
			return op.Invalid(op.Field("body", "invalid_length", "must have 1 to 10000 characters"))
		}
		if c.NotesCount >= maxNotes {
			return op.Fail("plan_limit", fmt.Sprintf("a contact has at most %d notes", maxNotes))
		}
		if err := insertNote(ctx, tx, org, note); err != nil {
			return err
		}
		sync := in.Body.CRMSync == nil || *in.Body.CRMSync
		if err := observe.Each(s.observers.notes, func(o NoteObserver) error { return o.NoteAdded(ctx, tx, org, note, sync) }); err != nil {
			return err
		}
		return s.dressNote(ctx, tx, org, &note)
	})
	if err != nil {
		return nil, err
	}
	return &op.Out[call.Note]{Body: note, Location: op.Prefix + "/contacts/" + in.ID + "/timeline?kinds=note"}, nil
}

func (s *Service) dressNote(ctx context.Context, q db.Querier, org string, n *call.Note) error {
	all, err := s.cfg.Systems.NoteSyncs(ctx, q, org, []string{n.ID})
	n.CRMSync = append(n.CRMSync, all[n.ID]...)
	return err
}

func insertNote(ctx context.Context, tx db.Querier, org string, n call.Note) error {
	const q = `INSERT INTO contact_notes (org_id, id, contact_id, body, pinned, author_type, author_id, author_name, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
	_, err := tx.Exec(ctx, q, org, n.ID, *n.ContactID, n.Body, n.Pinned, n.Author.Type, n.Author.ID, n.Author.Name, n.CreatedAt)
	if err != nil {
		return fmt.Errorf("insert note: %w", err)
	}
	return countNotes(ctx, tx, org, *n.ContactID)
}

func countNotes(ctx context.Context, tx db.Querier, org, id string) error {
	const q = `UPDATE contacts SET notes_count = (SELECT count(*) FROM contact_notes WHERE org_id = $1 AND contact_id = $2)
		WHERE org_id = $1 AND id = $2`
	_, err := tx.Exec(ctx, q, org, id)
	return err
}

// Note returns a note of a contact, or db.ErrNone.
func (s *Service) Note(ctx context.Context, q db.Querier, org, id string) (call.Note, error) {
	const text = `SELECT ` + noteColumns + ` FROM contact_notes WHERE org_id = $1 AND id = $2`
	return scanNote(q.QueryRow(ctx, text, org, id).Scan)
}

const noteColumns = `id, contact_id, body, pinned, author_type, author_id, author_name, created_at`

func scanNote(scan func(...any) error) (call.Note, error) {
	n := call.Note{CRMSync: []call.NoteSync{}}
	var of string
	err := scan(&n.ID, &of, &n.Body, &n.Pinned, &n.Author.Type, &n.Author.ID, &n.Author.Name, &n.CreatedAt)
	n.ContactID = &of
	return n, err
}
