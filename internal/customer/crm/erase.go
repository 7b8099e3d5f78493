package crm

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
)

// Erasure of people and calls. Records that were written to the connected systems stay there.

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
	const q = `DELETE FROM crm_syncs WHERE org_id = $1 AND (contact_id = $2 OR subject_id = $2
		OR subject_id IN (SELECT id FROM contact_notes WHERE org_id = $1 AND contact_id = $2))`
	if _, err := tx.Exec(ctx, q, org, id); err != nil {
		return fmt.Errorf("erase syncs of contact: %w", err)
	}
	return nil
}

// EraseCall deletes the sync jobs of a call and its notes, in the caller's transaction.
func (s *Service) EraseCall(ctx context.Context, tx db.Querier, org, callID string) error {
	if _, err := tx.Exec(ctx, `DELETE FROM crm_syncs WHERE org_id = $1 AND (call_id = $2 OR subject_id = $2)`, org, callID); err != nil {
		return fmt.Errorf("erase syncs of call: %w", err)
	}
	return nil
}

// EraseWithText deletes stored error texts of connected systems that contain the digits, in the caller's transaction. It
// returns the number of rows.
func (s *Service) EraseWithText(ctx context.Context, tx db.Querier, org, digits string) (gone int, err error) {
	for _, q := range []string{
		`UPDATE crm_syncs SET error = NULL WHERE org_id = $1 AND error LIKE $2`,
		`UPDATE crm_refs SET error = NULL WHERE org_id = $1 AND error LIKE $2`,
		`UPDATE crm_connections SET refresh_error = NULL WHERE org_id = $1 AND refresh_error LIKE $2`,
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
