package contact

import (
	"context"
	"fmt"
	"strings"

	"soniq/internal/platform/db"
	"soniq/internal/telephony/number"
)

const contactColumns = `id, org_id, first_name, last_name, name, company, title, phones, emails, tags, custom, source, owner_user_id, vip,
	do_not_call, notes_count, last_contacted_at, created_at, updated_at`

func scanContact(scan func(...any) error) (Contact, error) {
	var c Contact
	var phones db.JSON[[]Phone]
	var emails db.JSON[[]Email]
	var tags db.JSON[[]string]
	var custom db.JSON[map[string]string]
	err := scan(&c.ID, &c.OrgID, &c.FirstName, &c.LastName, &c.Name, &c.Company, &c.Title, &phones, &emails, &tags, &custom, &c.Source,
		&c.OwnerUserID, &c.VIP, &c.DoNotCall, &c.NotesCount, &c.LastContactedAt, &c.CreatedAt, &c.UpdatedAt)
	c.Phones, c.Emails, c.Tags, c.Custom, c.ExternalRefs = phones.V, emails.V, tags.V, custom.V, []Ref{}
	return c, err
}

func getContact(ctx context.Context, q db.Querier, org, id string) (Contact, error) {
	return scanContact(q.QueryRow(ctx, `SELECT `+contactColumns+` FROM contacts WHERE org_id = $1 AND id = $2`, org, id).Scan)
}

func queryContacts(ctx context.Context, q db.Querier, f *db.Filter) ([]Contact, error) {
	text, args := f.SQL()
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("list contacts: %w", err)
	}
	defer rows.Close()
	var all []Contact
	for rows.Next() {
		c, err := scanContact(rows.Scan)
		if err != nil {
			return nil, fmt.Errorf("list contacts: %w", err)
		}
		all = append(all, c)
	}
	return all, rows.Err()
}

func hasUser(ctx context.Context, q db.Querier, org, id string) (bool, error) {
	var n int
	err := q.QueryRow(ctx, `SELECT count(*) FROM users WHERE org_id = $1 AND id = $2 AND status <> 'removed'`, org, id).Scan(&n)
	return n > 0, err
}

// insert writes a new contact and its index rows.
func (s *Service) insert(ctx context.Context, tx db.Querier, c Contact, country string) error {
	return s.insertAll(ctx, tx, c.OrgID, []Contact{c}, country)
}

func (s *Service) insertAll(ctx context.Context, tx db.Querier, org string, all []Contact, country string) error {
	const width = 20
	err := db.Bulk(len(all), func(from, to int) error {
		text := `INSERT INTO contacts (org_id, id, first_name, last_name, name, sort_name, company, title, phones, emails, tags, custom,
			source, owner_user_id, vip, do_not_call, search, created_at, updated_at, notes_count)
			VALUES ` + db.Values(1, to-from, make([]string, width)...)
		args := make([]any, 0, width*(to-from))
		for _, c := range all[from:to] {
			args = append(args, org, c.ID, c.FirstName, c.LastName, c.Name, sortName(c), c.Company, c.Title, db.AsJSON(c.Phones),
				db.AsJSON(c.Emails),
				db.AsJSON(c.Tags), db.AsJSON(c.Custom), c.Source, c.OwnerUserID, c.VIP, c.DoNotCall, c.searchText(), c.CreatedAt,
				c.UpdatedAt, 0)
		}
		_, err := tx.Exec(ctx, text, args...)
		return err
	})
	if err != nil {
		return fmt.Errorf("insert contacts: %w", err)
	}
	return s.index(ctx, tx, org, indexedContacts(all), country)
}

// update writes a changed contact and its index rows.
func (s *Service) update(ctx context.Context, tx db.Querier, before, c Contact, country string) error {
	const q = `UPDATE contacts SET first_name = $3, last_name = $4, name = $5, sort_name = $6, company = $7, title = $8, phones = $9,
			emails = $10, tags = $11, custom = $12, owner_user_id = $13, vip = $14, do_not_call = $15, search = $16, updated_at = $17
		WHERE org_id = $1 AND id = $2`
	_, err := tx.Exec(ctx, q, c.OrgID, c.ID, c.FirstName, c.LastName, c.Name, sortName(c), c.Company, c.Title, db.AsJSON(c.Phones),
		db.AsJSON(c.Emails), db.AsJSON(c.Tags), db.AsJSON(c.Custom), c.OwnerUserID, c.VIP, c.DoNotCall, c.searchText(), c.UpdatedAt)
	if err != nil {
		return fmt.Errorf("update contact: %w", err)
	}
	return s.reindex(ctx, tx, c.OrgID, indexedContacts([]Contact{before}), indexedContacts([]Contact{c}), country)
}

func (s *Service) deleteContact(ctx context.Context, tx db.Querier, c Contact, country string) error {
	if err := s.reindex(ctx, tx, c.OrgID, indexedContacts([]Contact{c}), nil, country); err != nil {
		return err
	}
	for _, q := range []string{
		`DELETE FROM contact_notes WHERE org_id = $1 AND contact_id = $2`,
		`DELETE FROM contacts WHERE org_id = $1 AND id = $2`,
	} {
		if _, err := tx.Exec(ctx, q, c.OrgID, c.ID); err != nil {
			return fmt.Errorf("delete contact: %w", err)
		}
	}
	return nil
}

// sortName returns the sort key of lists.
func sortName(c Contact) string { return strings.ToLower(c.Name) }

// searchText returns the text for list searches: names, addresses, and numbers as digits only.
func (c Contact) searchText() string {
	parts := []string{c.Name, c.Company, c.Title}
	for _, e := range c.Emails {
		parts = append(parts, e.Value)
	}
	for _, p := range c.Phones {
		parts = append(parts, p.Number, digitsOf(p.Written))
	}
	return strings.ToLower(strings.Join(parts, "\n"))
}

// UpdateLastContacted sets the time of the last call with the contacts that have a number, if it is later.
func (s *Service) UpdateLastContacted(ctx context.Context, tx db.Querier, org, e164 string, at db.Time) error {
	const q = `UPDATE contacts SET last_contacted_at = $3 WHERE org_id = $1 AND COALESCE(last_contacted_at, 0) < $3
		AND id IN (SELECT record_id FROM contact_phones WHERE org_id = $1 AND number IN ($2, $4) AND source = '')`
	given, other := number.Spellings(e164)
	if _, err := tx.Exec(ctx, q, org, given, at, other); err != nil {
		return fmt.Errorf("write last contact: %w", err)
	}
	return nil
}
