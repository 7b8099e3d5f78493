package org

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
)

// SetExtension assigns an extension to a user or a queue, in place of their previous one. "" removes it. If the
// extension is taken, the error is a conflict (db.IsConflict): call it in a savepoint if the transaction must
// continue.
func SetExtension(ctx context.Context, tx db.Querier, org, owner, extension string) error {
	const drop = `DELETE FROM extensions WHERE org_id = $1 AND owner_id = $2 AND extension <> $3`
	if _, err := tx.Exec(ctx, drop, org, owner, extension); err != nil {
		return fmt.Errorf("free extension: %w", err)
	}
	if extension == "" {
		return nil
	}
	if has, err := ExtensionOwner(ctx, tx, org, extension); err == nil && has == owner {
		return nil
	}
	const take = `INSERT INTO extensions (org_id, extension, owner_id) VALUES ($1, $2, $3)`
	if _, err := tx.Exec(ctx, take, org, extension, owner); err != nil {
		return fmt.Errorf("take extension %s: %w", extension, err)
	}
	return nil
}

// ExtensionOwner returns the id of the user or queue that has an extension, or db.ErrNone.
func ExtensionOwner(ctx context.Context, q db.Querier, org, extension string) (owner string, err error) {
	const text = `SELECT owner_id FROM extensions WHERE org_id = $1 AND extension = $2`
	err = q.QueryRow(ctx, text, org, extension).Scan(&owner)
	return owner, err
}

// Extensions returns the set of extensions that are taken.
func Extensions(ctx context.Context, q db.Querier, org string) (map[string]bool, error) {
	rows, err := q.Query(ctx, `SELECT extension FROM extensions WHERE org_id = $1`, org)
	if err != nil {
		return nil, fmt.Errorf("list extensions: %w", err)
	}
	defer rows.Close()
	taken := map[string]bool{}
	for rows.Next() {
		var e string
		if err := rows.Scan(&e); err != nil {
			return nil, err
		}
		taken[e] = true
	}
	return taken, rows.Err()
}

// OwnedExtension is an extension of a user or a queue.
type OwnedExtension struct{ Org, Extension, Owner string }

// AllExtensions returns the extensions of all organisations, for the checks of an operator.
func AllExtensions(ctx context.Context, q db.Querier) (all []OwnedExtension, err error) {
	// tenant: an operator checks the extensions of all organisations
	rows, err := q.Query(ctx, `SELECT org_id, extension, owner_id FROM extensions ORDER BY org_id, extension`)
	if err != nil {
		return nil, fmt.Errorf("list extensions: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var e OwnedExtension
		if err := rows.Scan(&e.Org, &e.Extension, &e.Owner); err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, rows.Err()
}
