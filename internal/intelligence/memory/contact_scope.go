package memory

import (
	"context"
	"fmt"
	"slices"

	"soniq/internal/platform/db"
)

// Search in the entries of one contact: its calls, entries of its numbers, and its notes. They are read from the
// database like those of a number, so that the result is complete.

// Contacts maps between contacts and phone numbers.
type Contacts interface {
	// NumbersOf returns the numbers of a contact in the form stored with calls; none if the contact does not exist.
	NumbersOf(ctx context.Context, org, contactID string) ([]string, error)
	// IDsByNumber returns the ids of the contacts with a number.
	IDsByNumber(ctx context.Context, org, phone string) ([]string, error)
	// Named returns the existing contacts of those, by id.
	Named(ctx context.Context, org string, contactIDs []string) (map[string]Person, error)
}

// maxNumbers limits the numbers of a contact that are searched.
const maxNumbers = 20

// rowsOfContact reads the newest rows of one contact: of its calls, notes and numbers.
func (s *Service) rowsOfContact(ctx context.Context, org, contactID string, since, until db.Time, each func(row)) error {
	seen := map[int64]bool{}
	once := func(r row) error {
		if !seen[r.key] {
			seen[r.key] = true
			each(r)
		}
		return nil
	}
	q := s.db.Read(ctx)
	if err := rowsOfCalls(ctx, q, org, contactID, since, until, phoneRows, once); err != nil {
		return err
	}
	if err := rowsOfNotes(ctx, q, org, contactID, since, until, phoneRows, once); err != nil {
		return err
	}
	if s.Contacts == nil {
		return nil
	}
	numbers, err := s.Contacts.NumbersOf(ctx, org, contactID)
	for _, n := range numbers[:min(len(numbers), maxNumbers)] {
		if err == nil {
			err = rowsOfPhone(ctx, q, org, n, since, until, phoneRows, once)
		}
	}
	return err
}

// rowsOfNumber reads the newest rows of one number, and the notes of the contacts with that number.
func (s *Service) rowsOfNumber(ctx context.Context, org, phone string, since, until db.Time, each func(row)) error {
	all := func(r row) error { each(r); return nil }
	if err := rowsOfPhone(ctx, s.db.Read(ctx), org, phone, since, until, phoneRows, all); err != nil || s.Contacts == nil {
		return err
	}
	ids, err := s.Contacts.IDsByNumber(ctx, org, phone)
	for _, id := range ids {
		if err == nil {
			err = rowsOfNotes(ctx, s.db.Read(ctx), org, id, since, until, phoneRows, all)
		}
	}
	return err
}

// rowsOfCalls reads the newest rows of the calls with a contact.
func rowsOfCalls(ctx context.Context, q db.Querier, org, contactID string, since, until db.Time, limit int, each func(row) error) error {
	const text = `SELECT v.key, v.phone, v.at, v.kind, v.direction, v.agent_id, v.queue_id, v.model, v.vector, v.terms
		FROM memory_calls c JOIN memory_items i ON i.org_id = c.org_id AND i.call_id = c.call_id
			JOIN memory_vectors v ON v.org_id = i.org_id AND v.key = i.key
		WHERE c.org_id = $1 AND c.contact_id = $2 AND c.at >= $3 AND c.at < $4 ORDER BY c.at DESC LIMIT $5`
	rows, err := q.Query(ctx, text, org, contactID, since, until, limit)
	if err != nil {
		return err
	}
	return eachRow(rows, each)
}

// rowsOfNotes reads the newest notes of a contact.
func rowsOfNotes(ctx context.Context, q db.Querier, org, contactID string, since, until db.Time, limit int, each func(row) error) error {
	const text = `SELECT ` + factColumns + ` FROM memory_facts
		WHERE org_id = $1 AND contact_id = $2 AND created_at >= $3 AND created_at < $4 AND key IS NOT NULL ORDER BY created_at DESC
		LIMIT $5`
	rows, err := q.Query(ctx, text, org, contactID, since, until, limit)
	if err != nil {
		return err
	}
	return eachRow(rows, each)
}

// MergeContact assigns the entries of one contact to another, in the caller's transaction.
func (s *Service) MergeContact(ctx context.Context, tx db.Querier, org, from, into string) error {
	return moveContact(ctx, tx, org, from, into)
}

// DeleteContact deletes the notes of a contact and removes it from its calls, in the caller's transaction.
func (s *Service) DeleteContact(ctx context.Context, tx db.Querier, org, id string) error {
	if _, err := tx.Exec(ctx, `DELETE FROM memory_facts WHERE org_id = $1 AND contact_id = $2`, org, id); err != nil {
		return fmt.Errorf("forget notes of contact: %w", err)
	}
	return moveContact(ctx, tx, org, id, "")
}

// moveContact replaces a contact by another, or by none.
func moveContact(ctx context.Context, tx db.Querier, org, from, into string) error {
	for _, q := range []string{
		`UPDATE memory_facts SET contact_id = $3 WHERE org_id = $1 AND contact_id = $2`,
		`UPDATE memory_calls SET contact_id = $3 WHERE org_id = $1 AND contact_id = $2`,
	} {
		if _, err := tx.Exec(ctx, q, org, from, db.Null(into)); err != nil {
			return fmt.Errorf("remember whose it is: %w", err)
		}
	}
	return nil
}

// contactsOf returns the contacts of entries, by id.
func (s *Service) contactsOf(ctx context.Context, org string, items map[int64]foundItem) (map[string]Person, error) {
	var ids []string
	for _, f := range items {
		if id := string(f.contactID); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 || s.Contacts == nil {
		return nil, nil
	}
	return s.Contacts.Named(ctx, org, ids)
}
