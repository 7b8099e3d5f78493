package crm

import (
	"context"
	"fmt"

	"soniq/internal/customer/contact"
	"soniq/internal/customer/crm/adapter"
	"soniq/internal/platform/db"
	"soniq/internal/platform/egress"
)

// externalRef returns the id of a contact's record in a system, and its content after the last write. Unknown values
// are "".
func externalRef(ctx context.Context, q db.Querier, org, contactID, connection string) (id, base string, err error) {
	const text = `SELECT external_id, COALESCE(base, '') FROM crm_refs WHERE org_id = $1 AND contact_id = $2 AND connection_id = $3`
	err = q.QueryRow(ctx, text, org, contactID, connection).Scan(&id, &base)
	if db.IsNone(err) {
		return "", "", nil
	}
	return id, base, err
}

// putRef writes the sync status of a contact in a system.
func putRef(ctx context.Context, tx db.Querier, x Sync, out adapter.WriteResult) error {
	status, at := x.Status, db.Time{}
	switch status {
	case "synced":
		at = x.UpdatedAt
		if out.Conflict != "" {
			status = "conflict"
		}
	case "skipped":
		return nil
	}
	const q = `INSERT INTO crm_refs (org_id, contact_id, connection_id, external_id, url, status, synced_at, error, base)
		SELECT org_id, id, $3, $4, $5, $6, CAST($7 AS BIGINT), $8, $9 FROM contacts WHERE org_id = $1 AND id = $2
		ON CONFLICT (org_id, contact_id, connection_id) DO UPDATE SET status = excluded.status, error = excluded.error,
			external_id = CASE WHEN excluded.external_id = '' THEN crm_refs.external_id ELSE excluded.external_id END,
			base = COALESCE(excluded.base, crm_refs.base),
			url = CASE WHEN excluded.url = '' THEN crm_refs.url ELSE excluded.url END, synced_at = COALESCE(excluded.synced_at,
			crm_refs.synced_at)`
	_, err := tx.Exec(ctx, q, x.org, x.SubjectID, x.ConnectionID, out.ExternalID, out.URL, status, at, x.Error, db.Null(out.Base))
	if err != nil {
		return fmt.Errorf("write external reference of contact: %w", err)
	}
	return nil
}

// Refs returns the records of contacts in connected systems, including those that are not written yet.
func (s *Service) Refs(ctx context.Context, q db.Querier, org string, contacts []string) (map[string][]contact.Ref, error) {
	const base = `SELECT r.contact_id, r.connection_id, c.provider, r.external_id, r.url, r.status, r.synced_at, r.error
		FROM crm_refs r JOIN crm_connections c ON c.org_id = r.org_id AND c.id = r.connection_id WHERE r.org_id = $1`
	text, args := db.Where(base, org).In("r.contact_id", contacts).SQL()
	rows, err := q.Query(ctx, text+" ORDER BY r.connection_id", args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[string][]contact.Ref{}
	for rows.Next() {
		var r contact.Ref
		var id, url string
		if err := rows.Scan(&id, &r.ConnectionID, &r.Provider, &r.ExternalID, &url, &r.SyncStatus, &r.SyncedAt, &r.Error); err != nil {
			return nil, err
		}
		if egress.IsWebAddress(url) {
			r.URL = &url
		}
		out[id] = append(out[id], r)
	}
	return out, rows.Err()
}

// ContactMerged moves the records of one contact to another. In systems in which the target has a record already, nothing is
// moved.
func (s *Service) ContactMerged(ctx context.Context, tx db.Querier, org, from string, into contact.Contact) error {
	const q = `UPDATE crm_refs SET contact_id = $3 WHERE org_id = $1 AND contact_id = $2
		AND connection_id NOT IN (SELECT connection_id FROM crm_refs WHERE org_id = $1 AND contact_id = $3)`
	if _, err := tx.Exec(ctx, q, org, from, into.ID); err != nil {
		return fmt.Errorf("merge records in connected systems: %w", err)
	}
	const syncs = `UPDATE crm_syncs SET contact_id = $3 WHERE org_id = $1 AND contact_id = $2`
	if _, err := tx.Exec(ctx, syncs, org, from, into.ID); err != nil {
		return fmt.Errorf("merge syncs of contact: %w", err)
	}
	return nil
}
