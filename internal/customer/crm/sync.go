package crm

import (
	"context"
	"fmt"
	"slices"

	"soniq/internal/customer/contact"
	"soniq/internal/customer/crm/adapter"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
	"soniq/internal/platform/visibility"
	"soniq/internal/telephony/call"
)

// Sync is a write to a connected system: of a note, a finished call, or a contact.
type Sync struct {
	ID           string  `json:"id" example:"syn_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	ConnectionID string  `json:"connection_id"`
	Provider     string  `json:"provider"`
	Kind         string  `json:"kind" enum:"note,call,contact"`
	SubjectID    string  `json:"subject_id" doc:"The note, call or contact"`
	ContactID    *string `json:"contact_id"`
	CallID       *string `json:"call_id"`
	Status       string  `json:"status" enum:"pending,synced,failed,skipped"`
	Attempts     int     `json:"attempts"`
	ExternalID   *string `json:"external_id" doc:"What the system calls it"`
	Error        *string `json:"error"`
	CreatedAt    db.Time `json:"created_at"`
	UpdatedAt    db.Time `json:"updated_at"`

	org            string
	waitsForUpdate bool   // wait for RequeueCall if the system takes a call only once
	isRetry        bool   // an earlier attempt was made
	writtenDigest  string // digest of the last written content; "" before the first write
}

// syncAttempts is the number of attempts of a write: over about seven hours.
const syncAttempts = 25

type syncArgs struct {
	ID string `json:"id"`
}

// ContactSaved enqueues the write of a contact to the systems that take contacts. If only is not nil, it lists the
// connections to write to.
func (s *Service) ContactSaved(ctx context.Context, tx db.Querier, c contact.Contact, only []string) error {
	return s.createSyncs(ctx, tx, Sync{Kind: "contact", SubjectID: c.ID, ContactID: &c.ID, org: c.OrgID},
		func(x adapter.Capabilities) bool { return x.Create || x.Update }, only)
}

// NoteAdded implements contact.NoteObserver.
func (s *Service) NoteAdded(ctx context.Context, tx db.Querier, org string, n call.Note, sync bool) error {
	if !sync {
		return nil
	}
	return s.QueueNote(ctx, tx, org, n)
}

// QueueNote enqueues the write of a note to the systems that take notes.
func (s *Service) QueueNote(ctx context.Context, tx db.Querier, org string, n call.Note) error {
	return s.createSyncs(ctx, tx, Sync{Kind: "note", SubjectID: n.ID, ContactID: n.ContactID, CallID: n.CallID, org: org},
		func(x adapter.Capabilities) bool { return x.Notes }, nil)
}

// QueueCall enqueues the write of a finished external call to the systems that take calls. If more is true,
// RequeueCall follows: systems that cannot change a call are written to only then.
func (s *Service) QueueCall(ctx context.Context, tx db.Querier, org string, r call.CDR, more bool) error {
	if r.ExternalNumber() == "" {
		return nil
	}
	if known, err := s.cachedConnections(ctx, org); err != nil || !known.logsCalls {
		return err
	}
	x := Sync{Kind: "call", SubjectID: r.CallID, CallID: &r.CallID, org: org}
	if r.Contact != nil && r.Contact.ID != "" {
		x.ContactID = &r.Contact.ID
	}
	x.waitsForUpdate = more
	return s.createSyncs(ctx, tx, x, func(x adapter.Capabilities) bool { return x.CallLog }, nil)
}

// RequeueCall enqueues a new write of a call to all systems it was queued for, with the data that exists now.
func (s *Service) RequeueCall(ctx context.Context, tx db.Querier, org, callID string) error {
	if known, err := s.cachedConnections(ctx, org); err != nil || !known.logsCalls {
		return err
	}
	all, err := syncsOf(ctx, tx, org, "call", callID)
	if err != nil {
		return fmt.Errorf("find syncs of call %s: %w", callID, err)
	}
	for _, x := range all {
		x.Status, x.CreatedAt = "pending", db.At(s.cfg.Clock.Now())
		if _, err := putSync(ctx, tx, x); err != nil {
			return err
		}
		if err := s.enqueueSync(ctx, tx, x); err != nil {
			return err
		}
	}
	return nil
}

// syncsOf returns the syncs of a subject.
func syncsOf(ctx context.Context, q db.Querier, org, kind, subject string) ([]Sync, error) {
	const text = `SELECT ` + syncColumns + syncTables + `WHERE x.org_id = $1 AND x.kind = $2 AND x.subject_id = $3 ORDER BY x.id`
	rows, err := q.Query(ctx, text, org, kind, subject)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []Sync
	for rows.Next() {
		x, err := scanSync(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return all, rows.Err()
}

// createSyncs writes one sync per system that takes it, and enqueues the jobs.
func (s *Service) createSyncs(ctx context.Context, tx db.Querier, x Sync, takes func(adapter.Capabilities) bool, only []string) error {
	all, err := s.allConnections(ctx, tx, x.org)
	if err != nil {
		return err
	}
	for _, c := range all {
		l, err := s.clientFor(c)
		if err != nil || l == nil || !c.enabled || !takes(l.adapter.Can()) || only != nil && !slices.Contains(only, c.ID) {
			continue
		}
		x.ID, x.ConnectionID, x.Status, x.CreatedAt, x.UpdatedAt = db.NewID("syn"), c.ID, "pending", db.At(s.cfg.Clock.Now()),
			db.At(s.cfg.Clock.Now())
		if x.ID, err = putSync(ctx, tx, x); err != nil {
			return err
		}
		if x.Kind == "contact" {
			if err := putRef(ctx, tx, x, adapter.WriteResult{}); err != nil {
				return err
			}
		}
		if x.waitsForUpdate && writesOnce(l.adapter) {
			continue
		}
		if err := s.enqueueSync(ctx, tx, x); err != nil {
			return err
		}
	}
	return nil
}

// writesOnce reports whether a system cannot change a call that was written to it.
func writesOnce(a adapter.Adapter) bool {
	o, ok := a.(adapter.SingleWriteCallLogger)
	return ok && o.LogsOnce()
}

// enqueueSync enqueues the job of a sync. Jobs of one sync run in order.
func (s *Service) enqueueSync(ctx context.Context, tx db.Querier, x Sync) error {
	return s.cfg.Jobs.Enqueue(ctx, tx, job.Spec{Org: x.org, Queue: Queue, Lane: "crm|" + x.ConnectionID, Kind: syncKind,
		Args: syncArgs{x.ID}, MaxAttempts: syncAttempts, OrderKey: syncKind + " " + x.ID})
}

// CheckContactTargets returns a violation for each of the named connections that takes no contacts.
func (s *Service) CheckContactTargets(ctx context.Context, org string, ids []string) ([]op.Violation, error) {
	all, err := s.allConnections(ctx, s.cfg.DB.Read(ctx), org)
	if err != nil {
		return nil, err
	}
	var wrong []op.Violation
	for i, id := range ids {
		field := fmt.Sprintf("connection_ids.%d", i)
		c, err := findConnection(all, id)
		if err != nil {
			wrong = append(wrong, op.Field(field, "not_found", "no such connection"))
			continue
		}
		if l, err := s.clientFor(c); c.Provider != "internal" && (err != nil || !c.enabled || !l.adapter.Can().Create) {
			wrong = append(wrong, op.Field(field, "not_available", "this connection takes no contacts"))
		}
	}
	return wrong, nil
}

const syncColumns = `x.id, x.org_id, x.connection_id, c.provider, x.kind, x.subject_id, x.contact_id, x.call_id, x.status, x.attempts,
	x.external_id, x.error, x.created_at, x.updated_at, x.written`

const syncTables = ` FROM crm_syncs x JOIN crm_connections c ON c.org_id = x.org_id AND c.id = x.connection_id `

func scanSync(scan func(...any) error) (x Sync, err error) {
	var written db.Null
	err = scan(&x.ID, &x.org, &x.ConnectionID, &x.Provider, &x.Kind, &x.SubjectID, &x.ContactID, &x.CallID, &x.Status, &x.Attempts,
		&x.ExternalID, &x.Error, &x.CreatedAt, &x.UpdatedAt, &written)
	x.writtenDigest = string(written)
	return x, err
}

// putSync writes a pending sync. If one exists for the subject and the connection, it is reset. It returns the id of
// the row.
func putSync(ctx context.Context, tx db.Querier, x Sync) (id string, err error) {
	const q = `INSERT INTO crm_syncs (org_id, id, connection_id, kind, subject_id, contact_id, call_id, status, attempts, created_at,
		updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $9, $9)
		ON CONFLICT (org_id, subject_id, connection_id) DO UPDATE SET status = excluded.status, attempts = 0, error = NULL,
		updated_at = excluded.updated_at
		RETURNING id`
	err = tx.QueryRow(ctx, q, x.org, x.ID, x.ConnectionID, x.Kind, x.SubjectID, x.ContactID, x.CallID, x.Status, x.CreatedAt).Scan(&id)
	if err != nil {
		return "", fmt.Errorf("write sync: %w", err)
	}
	return id, nil
}

func getSync(ctx context.Context, q db.Querier, org, id string) (Sync, error) {
	return scanSync(q.QueryRow(ctx, `SELECT `+syncColumns+syncTables+`WHERE x.org_id = $1 AND x.id = $2`, org, id).Scan)
}

// saveResult writes the result of an attempt. If a newer write was queued meanwhile, it stores only the record id and
// the digest: the status belongs to the other job.
func (x Sync) saveResult(ctx context.Context, tx db.Querier, seen db.Time) error {
	const made = `UPDATE crm_syncs SET attempts = attempts + 1, external_id = COALESCE($3, external_id), written = COALESCE($4, written)
		WHERE org_id = $1 AND id = $2`
	if _, err := tx.Exec(ctx, made, x.org, x.ID, x.ExternalID, db.Null(x.writtenDigest)); err != nil {
		return fmt.Errorf("write record id of sync: %w", err)
	}
	const q = `UPDATE crm_syncs SET status = $3, error = $4, updated_at = $5 WHERE org_id = $1 AND id = $2 AND updated_at = $6`
	if _, err := tx.Exec(ctx, q, x.org, x.ID, x.Status, x.Error, x.UpdatedAt, seen); err != nil {
		return fmt.Errorf("write result of sync: %w", err)
	}
	return nil
}

// SyncsIn is the request of crm.sync.list.
type SyncsIn struct {
	op.Paging
	Status       []string `query:"status" enum:"pending,synced,failed,skipped"`
	ConnectionID string   `query:"connection_id" maxLength:"40"`
}

// Syncs returns the writes to connected systems, newest first.
func (s *Service) Syncs(ctx context.Context, in *SyncsIn) (*op.Out[op.Page[Sync]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	view, err := visibility.From(ctx, s.cfg.DB.Read(ctx))
	if err != nil {
		return nil, err
	}
	f := func() *db.Filter {
		f := view.NarrowOptional(db.Where(`SELECT `+syncColumns+syncTables+`WHERE x.org_id = $1`, access.Org(ctx)), "x.call_id")
		return f.In("x.status", in.Status).Equal("x.connection_id", in.ConnectionID)
	}
	page := f()
	if after.ID != "" {
		page.And("x.id < ?", after.ID)
	}
	text, args := page.SQL()
	q := s.cfg.DB.Read(ctx)
	rows, err := q.Query(ctx, text+fmt.Sprintf(" ORDER BY x.id DESC LIMIT %d", in.Limit+1), args...)
	if err != nil {
		return nil, fmt.Errorf("list syncs: %w", err)
	}
	defer rows.Close()
	var all []Sync
	for rows.Next() {
		x, err := scanSync(rows.Scan)
		if err != nil {
			return nil, fmt.Errorf("list syncs: %w", err)
		}
		all = append(all, x)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	out := op.Paged(ctx, in.Paging, all, func(x Sync) op.Position { return op.Position{ID: x.ID} })
	return op.WithTotal(out, in.Paging, func() (int, error) { return f().Count(ctx, q) })
}

// Retry enqueues a failed or skipped write again.
func (s *Service) Retry(ctx context.Context, in *OneIn) (*op.Out[Sync], error) {
	var x Sync
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) (err error) {
		x, err = getSync(ctx, tx, access.Org(ctx), in.ID)
		if db.IsNone(err) {
			return op.NotFound("sync job")
		}
		if err != nil {
			return err
		}
		if x.Status == "synced" || x.Status == "pending" {
			return op.State("it is written, or about to be", x.Status)
		}
		x.Status, x.CreatedAt = "pending", db.At(s.cfg.Clock.Now())
		if _, err = putSync(ctx, tx, x); err != nil {
			return err
		}
		if x, err = getSync(ctx, tx, x.org, x.ID); err != nil {
			return err
		}
		return s.enqueueSync(ctx, tx, x)
	})
	if err != nil {
		return nil, err
	}
	return op.OK(x)
}

// NoteSyncs returns the sync status of notes.
func (s *Service) NoteSyncs(ctx context.Context, q db.Querier, org string, notes []string) (map[string][]call.NoteSync, error) {
	text, args := db.Where(`SELECT `+syncColumns+syncTables+`WHERE x.org_id = $1`, org).In("x.subject_id", notes).SQL()
	rows, err := q.Query(ctx, text+" ORDER BY x.id", args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[string][]call.NoteSync{}
	for rows.Next() {
		x, err := scanSync(rows.Scan)
		if err != nil {
			return nil, err
		}
		out[x.SubjectID] = append(out[x.SubjectID], call.NoteSync{ConnectionID: x.ConnectionID, Provider: x.Provider, Status: x.Status,
			ExternalID: x.ExternalID, Error: x.Error})
	}
	return out, rows.Err()
}
