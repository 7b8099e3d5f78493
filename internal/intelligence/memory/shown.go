package memory

import (
	"context"
	"database/sql"

	"soniq/internal/platform/db"
	"soniq/internal/platform/visibility"
)

// Searches of users who see only some calls of their organisation rank only passages of those calls, and entries that belong to no call.

// shownKeys returns the keys of the entries that a view shows; nil if it shows everything.
func (s *Service) shownKeys(ctx context.Context, org string, v visibility.View) (map[int64]bool, error) {
	if v.Everything() {
		return nil, nil
	}
	keys := map[int64]bool{}
	for _, f := range []*db.Filter{
		v.Narrow(db.Where(`SELECT key FROM memory_items WHERE org_id = $1`, org), "call_id"),
		v.NarrowOptional(db.Where(`SELECT key FROM memory_facts WHERE org_id = $1 AND key IS NOT NULL`, org), "call_id"),
	} {
		text, args := f.SQL()
		rows, err := s.db.Read(ctx).Query(ctx, text, args...)
		if err != nil {
			return nil, wrapError("find what the user sees", err)
		}
		err = scanAll(rows, func(rows *sql.Rows) error {
			var key int64
			err := rows.Scan(&key)
			keys[key] = true
			return err
		})
		if err != nil {
			return nil, wrapError("find what the user sees", err)
		}
	}
	return keys, nil
}

// passagesShown returns the condition of passages in the database; empty if the view shows everything.
func passagesShown(v visibility.View, user string) string {
	if v.Everything() {
		return ""
	}
	return " AND key IN (SELECT key FROM memory_items WHERE org_id = $1 AND " + v.Condition("call_id", user) + ")"
}

// factsShown returns the condition of facts in the database; empty if the view shows everything.
func factsShown(v visibility.View, user string) string {
	if v.Everything() {
		return ""
	}
	return " AND (call_id IS NULL OR call_id = '' OR " + v.Condition("call_id", user) + ")"
}

// userArg appends the argument of the conditions.
func userArg(v visibility.View, args ...any) []any {
	if v.Everything() {
		return args
	}
	return append(args, v.User())
}
