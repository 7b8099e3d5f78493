package call

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/observe"
	"soniq/internal/platform/op"
)

func (s *Service) noteOperations() []op.Operation {
	return []op.Operation{
		op.New("calls.note", "POST /calls/{id}/note", access.CallsWrite, "Add a note", s.AddNote).Status(201).Tool("add_call_note"),
		op.New("calls.notes.list", "GET /calls/{id}/notes", access.CallsRead, "List the notes of a call", s.Notes),
		op.Delete("calls.notes.delete", "DELETE /calls/{id}/notes/{note_id}", access.CallsWrite, "Delete a note", s.DeleteNote),
	}
}

// NoteIn holds the input of AddNote.
type NoteIn struct {
	ID   string `path:"id" maxLength:"40"`
	Body struct {
		Body    string `json:"body" doc:"1 to 10000 characters"`
		CRMSync *bool  `json:"crm_sync,omitempty" default:"true" doc:"Write it to the connected systems too"`
		Pinned  bool   `json:"pinned,omitempty" doc:"Shown first"`
	}
}

// AddNote adds a note to a call, also after its end.
func (s *Service) AddNote(ctx context.Context, in *NoteIn) (*op.Out[Note], error) {
	org := access.Org(ctx)
	if _, err := s.findCall(ctx, in.ID); err != nil {
		return nil, err
	}
	if n := utf8.RuneCountInString(in.Body.Body); n > 10_000 || strings.TrimSpace(in.Body.Body) == "" {
		return nil, op.Invalid(op.Field("body", "invalid_length", "must have 1 to 10000 characters"))
	}
	n := newNote{callID: in.ID, body: in.Body.Body, pinned: in.Body.Pinned, crmSync: in.Body.CRMSync == nil || *in.Body.CRMSync,
		author: AuthorOf(ctx)}
	id := db.NewID("note")
	var note Note
	err := s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		c, err := getCall(ctx, tx, org, in.ID)
		if db.IsNone(err) {
			return op.NotFound("call")
		}
		if err != nil {
			return err
		}
		if c.NotesCount >= maxNotes {
			return op.Fail("plan_limit", fmt.Sprintf("a call has at most %d notes", maxNotes))
		}
		n.phone = c.ExternalNumber()
		if err := s.insertNote(ctx, tx, org, n, id, db.At(s.Now())); err != nil {
			return err
		}
		if note, err = getNote(ctx, tx, org, in.ID, id); err != nil {
			return err
		}
		return s.addNoteSyncs(ctx, tx, org, []*Note{&note})
	})
	if err != nil {
		return nil, err
	}
	return &op.Out[Note]{Body: note, Location: op.Prefix + "/calls/" + in.ID + "/notes"}, nil
}

const noteColumns = `id, call_id, body, pinned, author_type, author_id, author_name, created_at`

func scanNote(r row) (Note, error) {
	n := Note{CRMSync: []NoteSync{}}
	var callID string
	err := r.Scan(&n.ID, &callID, &n.Body, &n.Pinned, &n.Author.Type, &n.Author.ID, &n.Author.Name, &n.CreatedAt)
	n.CallID = &callID
	return n, err
}

func getNote(ctx context.Context, q db.Querier, org, callID, id string) (Note, error) {
	const text = `SELECT ` + noteColumns + ` FROM notes WHERE org_id = $1 AND call_id = $2 AND id = $3`
	return scanNote(q.QueryRow(ctx, text, org, callID, id))
}

// GetNote returns a note of a call, or db.ErrNone.
func (s *Service) GetNote(ctx context.Context, org, callID, id string) (Note, error) {
	return getNote(ctx, s.cfg.DB.Read(ctx), org, callID, id)
}

// NotesIn holds the input of Notes.
type NotesIn struct {
	ID string `path:"id" maxLength:"40"`
	op.Paging
}

// Notes lists the notes of a call, oldest first.
func (s *Service) Notes(ctx context.Context, in *NotesIn) (*op.Out[op.Page[Note]], error) {
	if _, err := s.findCall(ctx, in.ID); err != nil {
		return nil, err
	}
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	f := notesOf(access.Org(ctx), in.ID)
	all, err := s.queryNotes(ctx, f.Page("created_at", false, after.Int, after.ID, in.Limit))
	if err != nil {
		return nil, err
	}
	shown := make([]*Note, len(all))
	for i := range all {
		shown[i] = &all[i]
	}
	if err := s.addNoteSyncs(ctx, s.cfg.DB.Read(ctx), access.Org(ctx), shown); err != nil {
		return nil, err
	}
	out := op.Paged(ctx, in.Paging, all, func(n Note) op.Position { return op.Position{Int: n.CreatedAt.UnixMicro(), ID: n.ID} })
	return op.WithTotal(out, in.Paging, func() (int, error) { return notesOf(access.Org(ctx), in.ID).Count(ctx, s.cfg.DB.Read(ctx)) })
}

func notesOf(org, callID string) *db.Filter {
	return db.Where(`SELECT `+noteColumns+` FROM notes WHERE org_id = $1`, org).Equal("call_id", callID)
}

func (s *Service) queryNotes(ctx context.Context, f *db.Filter) ([]Note, error) {
	text, args := f.SQL()
	rows, err := s.cfg.DB.Read(ctx).Query(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("list notes: %w", err)
	}
	defer rows.Close()
	all := []Note{}
	for rows.Next() {
		n, err := scanNote(rows)
		if err != nil {
			return nil, fmt.Errorf("list notes: %w", err)
		}
		all = append(all, n)
	}
	return all, rows.Err()
}

// addNoteSyncs adds the CRM synchronisation state to notes.
func (s *Service) addNoteSyncs(ctx context.Context, q db.Querier, org string, notes []*Note) error {
	if s.cfg.Contacts == nil || len(notes) == 0 {
		return nil
	}
	ids := make([]string, len(notes))
	for i, n := range notes {
		ids[i] = n.ID
	}
	syncs, err := s.cfg.Contacts.NoteSyncs(ctx, q, org, ids)
	if err != nil {
		return fmt.Errorf("find notes in connected systems: %w", err)
	}
	for _, n := range notes {
		n.CRMSync = append(n.CRMSync, syncs[n.ID]...)
	}
	return nil
}

// OneNote holds the ids of a call and of a note on it.
type OneNote struct {
	ID     string `path:"id" maxLength:"40"`
	NoteID string `path:"note_id" maxLength:"40"`
}

// DeleteNote removes a note.
func (s *Service) DeleteNote(ctx context.Context, in *OneNote) error {
	org := access.Org(ctx)
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		r, err := tx.Exec(ctx, `DELETE FROM notes WHERE org_id = $1 AND call_id = $2 AND id = $3`, org, in.ID, in.NoteID)
		if err != nil {
			return fmt.Errorf("delete note: %w", err)
		}
		if n, err := r.RowsAffected(); err != nil || n == 0 {
			return firstError(err, op.NotFound("note of this call"))
		}
		err = observe.Each(s.observers.notes, func(o NoteObserver) error { return o.NoteDeleted(ctx, tx, org, in.NoteID) })
		if err != nil {
			return err
		}
		return countNotes(ctx, tx, org, in.ID)
	})
}

func firstError(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}
