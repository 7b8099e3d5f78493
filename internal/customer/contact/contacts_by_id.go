package contact

import (
	"context"

	"soniq/internal/platform/db"
	"soniq/internal/telephony/number"
)

// ContactsByID returns the contacts with the given ids; missing ones are omitted.
func (s *Service) ContactsByID(ctx context.Context, org string, ids []string) ([]Contact, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return queryContacts(ctx, s.cfg.DB.Read(ctx), db.Where(`SELECT `+contactColumns+` FROM contacts WHERE org_id = $1`, org).In("id", ids))
}

// IDsByNumber returns the ids of contacts that have a number in E.164, at most ten.
func (s *Service) IDsByNumber(ctx context.Context, org, e164 string) (ids []string, err error) {
	const q = `SELECT DISTINCT record_id FROM contact_phones WHERE org_id = $1 AND number IN ($2, $3) AND source = '' LIMIT 10`
	given, other := number.Spellings(e164)
	return db.Strings(ctx, s.cfg.DB.Read(ctx), "find contacts with a number", q, org, given, other)
}
