package contact

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"soniq/internal/platform/db"
	"soniq/internal/telephony/number"
)

// The phone index: rows from numbers and e-mail addresses to contacts and copied records.

// indexedRecord is a contact or a copied record in the form of the index.
type indexedRecord struct {
	source, id string
	phones     []Phone
	emails     []string
}

func indexedContacts(all []Contact) []indexedRecord {
	out := make([]indexedRecord, len(all))
	for i, c := range all {
		out[i] = indexedRecord{id: c.ID, phones: c.Phones}
		for _, e := range c.Emails {
			out[i].emails = append(out[i].emails, e.Value)
		}
	}
	return out
}

// index adds records to the index. Cached results of their numbers are invalidated at commit.
func (s *Service) index(ctx context.Context, tx db.Querier, org string, all []indexedRecord, country string) error {
	phones, emails, keys := rowsOf(org, all, country)
	if err := insertPhones(ctx, tx, phones); err != nil {
		return fmt.Errorf("index numbers: %w", err)
	}
	if err := insertEmails(ctx, tx, emails); err != nil {
		return fmt.Errorf("index addresses: %w", err)
	}
	s.invalidateOnCommit(tx, keys)
	return nil
}

// reindex replaces the old records in the index by the new ones.
func (s *Service) reindex(ctx context.Context, tx db.Querier, org string, before, after []indexedRecord, country string) error {
	_, _, keys := rowsOf(org, before, country)
	s.invalidateOnCommit(tx, keys)
	for _, x := range before {
		for _, q := range []string{
			`DELETE FROM contact_phones WHERE org_id = $1 AND source = $2 AND record_id = $3`,
			`DELETE FROM contact_emails WHERE org_id = $1 AND source = $2 AND record_id = $3`,
		} {
			if _, err := tx.Exec(ctx, q, org, x.source, x.id); err != nil {
				return fmt.Errorf("delete from the index: %w", err)
			}
		}
	}
	return s.index(ctx, tx, org, after, country)
}

// invalidateOnCommit invalidates cached results when the transaction is committed.
func (s *Service) invalidateOnCommit(tx db.Querier, keys []cacheKey) {
	if len(keys) > 0 {
		db.OnCommit(tx, func() { s.results.invalidate(keys) })
	}
}

func rowsOf(org string, all []indexedRecord, country string) (phones, emails [][]any, keys []cacheKey) {
	for _, x := range all {
		for i, p := range x.phones {
			n := p.parse(country)
			phones = append(phones, []any{org, n.e164, x.source, x.id, i, n.digits, n.tail(), n.extension, n.national})
			keys = append(keys, cacheKey{org, number.Identity(n.e164)}, cacheKey{org, tailMark + n.tail()})
		}
		seen := []string{}
		for _, e := range x.emails {
			if e = strings.ToLower(e); e != "" && !slices.Contains(seen, e) {
				seen = append(seen, e)
				emails = append(emails, []any{org, e, x.source, x.id})
				keys = append(keys, cacheKey{org, e})
			}
		}
	}
	return phones, emails, keys
}

// tailMark is the prefix of cache keys for the tail of a number.
const tailMark = "…"

func insertPhones(ctx context.Context, tx db.Querier, rows [][]any) error {
	return db.Bulk(len(rows), func(from, to int) error {
		text := `INSERT INTO contact_phones (org_id, number, source, record_id, position, digits, tail, extension, domestic)
			VALUES ` + db.Values(1, to-from, make([]string, 9)...)
		_, err := tx.Exec(ctx, text, slices.Concat(rows[from:to]...)...)
		return err
	})
}

func insertEmails(ctx context.Context, tx db.Querier, rows [][]any) error {
	return db.Bulk(len(rows), func(from, to int) error {
		text := `INSERT INTO contact_emails (org_id, email, source, record_id) VALUES ` + db.Values(1, to-from, make([]string, 4)...)
		_, err := tx.Exec(ctx, text, slices.Concat(rows[from:to]...)...)
		return err
	})
}

// Columns and joins of an index search: the number's row with its contact or copied record.
const (
	matchColumns = ` p.source, p.record_id, p.digits, p.extension, p.domestic, c.name, c.company, c.title, c.emails, c.vip, c.do_not_call,
		c.tags, c.updated_at, e.name, e.company, e.title, e.email, e.url, e.updated_at `
	matchJoins = ` LEFT JOIN contacts c ON p.source = '' AND c.org_id = p.org_id AND c.id = p.record_id
		LEFT JOIN contact_entries e ON p.source <> '' AND e.org_id = p.org_id AND e.source = p.source AND e.id = p.record_id `
)

// findNumber returns the matches of a complete number, in each of its spellings.
func findNumber(ctx context.Context, q db.Querier, org, e164 string) ([]Match, error) {
	const text = `SELECT` + matchColumns + `FROM contact_phones p` + matchJoins + `WHERE p.org_id = $1 AND p.number IN ($2, $3) LIMIT 50`
	given, other := number.Spellings(e164)
	return queryMatches(ctx, q, func(m *Match, r numberRow) bool {
		m.Kind = Exact
		switch {
		case r.extension != "":
			m.Kind = Possible
		case r.national:
			m.Kind = National
		}
		return true
	}, text, org, given, other)
}

// findTail returns the numbers with the same tail as n, if one of the two is incomplete.
func findTail(ctx context.Context, q db.Querier, org string, n phoneNumber) ([]Match, error) {
	const text = `SELECT` + matchColumns + `FROM contact_phones p` + matchJoins + `WHERE p.org_id = $1 AND p.tail = $2
		AND (p.number = '' OR $3 = '') LIMIT 50`
	if n.tail() == "" {
		return nil, nil
	}
	return queryMatches(ctx, q, func(m *Match, r numberRow) bool {
		m.Kind = Possible
		return sharesTail(r.digits, n.digits)
	}, text, org, n.tail(), n.e164)
}

func findEmail(ctx context.Context, q db.Querier, org, email string) ([]Match, error) {
	const text = `SELECT p.source, p.record_id, '', '', FALSE, c.name, c.company, c.title, c.emails, c.vip, c.do_not_call, c.tags,
		c.updated_at, e.name, e.company, e.title, e.email, e.url, e.updated_at FROM contact_emails p` + matchJoins +
		`WHERE p.org_id = $1 AND p.email = $2 LIMIT 50`
	return queryMatches(ctx, q, func(m *Match, _ numberRow) bool { m.Kind = Exact; return true }, text, org, email)
}

// numberRow holds the columns of a number's row.
type numberRow struct {
	digits, extension string
	national          bool
}

func queryMatches(ctx context.Context, q db.Querier, judge func(*Match, numberRow) bool, text string, args ...any) ([]Match, error) {
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []Match
	for rows.Next() {
		m, r, err := scanMatch(rows.Scan)
		if err != nil {
			return nil, err
		}
		if judge(&m, r) && !slices.ContainsFunc(all, func(o Match) bool { return o.same(m) && o.Kind.rank() <= m.Kind.rank() }) {
			all = append(all, m)
		}
	}
	return all, rows.Err()
}

func scanMatch(scan func(...any) error) (m Match, r numberRow, err error) {
	var name, company, title, entryName, entryCompany, entryTitle, email, url db.Null
	var emails db.JSON[[]Email]
	var tags db.JSON[[]string]
	var vip, quiet *bool
	var at, entryAt db.Time
	var id string
	err = scan(&m.connection, &id, &r.digits, &r.extension, &r.national, &name, &company, &title, &emails, &vip, &quiet, &tags, &at,
		&entryName, &entryCompany, &entryTitle, &email, &url, &entryAt)
	if m.connection == "" {
		m.ContactID, m.Name, m.Company, m.Title, m.UpdatedAt, m.tags = id, string(name), string(company), string(title), at.Time, tags.V
		m.vip, m.doNotCall = vip != nil && *vip, quiet != nil && *quiet
		if len(emails.V) > 0 {
			m.Email = emails.V[0].Value
		}
		return m, r, err
	}
	m.ExternalID, m.Name, m.Company, m.Title, m.Email, m.URL, m.UpdatedAt = id, string(entryName), string(entryCompany), string(entryTitle),
		string(email), string(url), entryAt.Time
	return m, r, err
}
