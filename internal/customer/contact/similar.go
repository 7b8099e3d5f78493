package contact

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"soniq/internal/platform/db"
	"soniq/internal/platform/fuzzy"
)

// Limits of contacts with similar names.
const (
	maxSimilar  = 10     // that are added to those that match
	maxCompared = 50_000 // names of an organisation that are compared, the newest ones
)

// similar returns the contacts whose name or company is similar to the text that was searched, the most similar first, without those that
// match. Only their names are read of all contacts that the other filters allow.
func (s *Service) similar(ctx context.Context, q db.Querier, org string, in *ListIn, country string) ([]Contact, error) {
	name, ok := fuzzy.New(in.Q)
	if !ok {
		return nil, nil
	}
	others := *in
	others.Q = ""
	build, err := others.filter("id, name, company", org, country)
	if err != nil {
		return nil, err
	}
	ids, err := mostSimilar(ctx, q, build().And("NOT "+hasText, searchPattern(in.Q)), name)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	all, err := queryContacts(ctx, q, db.Where(`SELECT `+contactColumns+` FROM contacts WHERE org_id = $1`, org).In("id", ids))
	slices.SortFunc(all, func(a, b Contact) int { return slices.Index(ids, a.ID) - slices.Index(ids, b.ID) })
	return all, err
}

// mostSimilar returns the ids of the contacts with the most similar names.
func mostSimilar(ctx context.Context, q db.Querier, f *db.Filter, name fuzzy.Name) ([]string, error) {
	text, args := f.SQL()
	rows, err := q.Query(ctx, text+fmt.Sprintf(" ORDER BY id DESC LIMIT %d", maxCompared), args...)
	if err != nil {
		return nil, fmt.Errorf("compare names of contacts: %w", err)
	}
	defer rows.Close()
	type match struct {
		id, name string
		distance int
	}
	var found []match
	for rows.Next() {
		var id, own, company string
		if err := rows.Scan(&id, &own, &company); err != nil {
			return nil, fmt.Errorf("compare names of contacts: %w", err)
		}
		if d, ok := name.Distance(own + " " + company); ok {
			found = append(found, match{id, own, d})
		}
	}
	slices.SortFunc(found, func(a, b match) int {
		return cmp.Or(a.distance-b.distance, cmp.Compare(a.name, b.name), cmp.Compare(a.id, b.id))
	})
	var ids []string
	for _, m := range found[:min(len(found), maxSimilar)] {
		ids = append(ids, m.id)
	}
	return ids, rows.Err()
}
