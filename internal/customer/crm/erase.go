package crm

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/platform/personal"
)

// Erasure of people and calls. Records that were written to the connected systems stay there.

// The sync jobs of a contact and its notes, and those of a call and its notes.
const (
	syncsOfContact = ` FROM crm_syncs WHERE org_id = $1 AND (contact_id = $2 OR subject_id = $2
		OR subject_id IN (SELECT id FROM contact_notes WHERE org_id = $1 AND contact_id = $2))`
	syncsOfCall = ` FROM crm_syncs WHERE org_id = $1 AND (call_id = $2 OR subject_id = $2)`
)

// ContactErased deletes the copies of a contact's records from connected systems, and the sync jobs of the contact and
// its notes, in the caller's transaction.
func (s *Service) ContactErased(ctx context.Context, tx db.Querier, org, id string) error {
	refs, err := s.Refs(ctx, tx, org, []string{id})
	if err != nil {
		return fmt.Errorf("find contact in connected systems: %w", err)
	}
	for _, r := range refs[id] {
		if err := s.cfg.Contacts.EraseEntry(ctx, tx, org, r.ConnectionID, r.ExternalID); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, `DELETE`+syncsOfContact, org, id); err != nil {
		return fmt.Errorf("erase syncs of contact: %w", err)
	}
	return nil
}

// EraseCall deletes the sync jobs of a call and its notes, in the caller's transaction.
func (s *Service) EraseCall(ctx context.Context, tx db.Querier, org, callID string) error {
	if _, err := tx.Exec(ctx, `DELETE`+syncsOfCall, org, callID); err != nil {
		return fmt.Errorf("erase syncs of call: %w", err)
	}
	return nil
}

// Rows with a text in their error.
const (
	errorWith        = `org_id = $1 AND error LIKE $2`
	refreshErrorWith = `org_id = $1 AND refresh_error LIKE $2`
)

// EraseWithText deletes stored error texts of connected systems that contain the digits, in the caller's transaction. It
// returns the number of rows.
func (s *Service) EraseWithText(ctx context.Context, tx db.Querier, org, digits string) (gone int, err error) {
	for _, q := range []string{
		`UPDATE crm_syncs SET error = NULL WHERE ` + errorWith,
		`UPDATE crm_refs SET error = NULL WHERE ` + errorWith,
		`UPDATE crm_connections SET refresh_error = NULL WHERE ` + refreshErrorWith,
	} {
		r, err := tx.Exec(ctx, q, org, "%"+db.Escape(digits)+"%")
		if err != nil {
			return gone, fmt.Errorf("erase error texts of connected systems: %w", err)
		}
		n, err := r.RowsAffected()
		if err != nil {
			return gone, err
		}
		gone += int(n)
	}
	return gone, nil
}

// ExportContact exports the records of a contact in connected systems and its sync jobs.
func (s *Service) ExportContact(ctx context.Context, q db.Querier, org, id string, w personal.Writer) error {
	const refs = `SELECT * FROM crm_refs WHERE org_id = $1 AND contact_id = $2 ORDER BY connection_id`
	if err := personal.Rows(ctx, q, w, "crm_refs", refs, org, id); err != nil {
		return err
	}
	return personal.Rows(ctx, q, w, "crm_syncs", `SELECT *`+syncsOfContact+` ORDER BY id`, org, id)
}

// ExportCall exports the sync jobs of a call and its notes.
func (s *Service) ExportCall(ctx context.Context, q db.Querier, org, callID string, w personal.Writer) error {
	return personal.Rows(ctx, q, w, "crm_syncs", `SELECT *`+syncsOfCall+` ORDER BY id`, org, callID)
}

// ExportWithText exports stored error texts of connected systems that contain the digits.
func (s *Service) ExportWithText(ctx context.Context, q db.Querier, org, digits string, w personal.Writer) error {
	for kind, text := range map[string]string{
		"crm_syncs":       `SELECT * FROM crm_syncs WHERE ` + errorWith + ` ORDER BY id`,
		"crm_refs":        `SELECT * FROM crm_refs WHERE ` + errorWith + ` ORDER BY contact_id, connection_id`,
		"crm_connections": `SELECT id, provider, name, refresh_error, refreshed_at FROM crm_connections WHERE ` + refreshErrorWith + ` ORDER BY id`,
	} {
		if err := personal.Rows(ctx, q, w, kind, text, org, "%"+db.Escape(digits)+"%"); err != nil {
			return err
		}
	}
	return nil
}
