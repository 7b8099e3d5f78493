package contact

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"soniq/internal/platform/db"
	"soniq/internal/platform/observe"
	"soniq/internal/telephony/number"
)

// Erasure of a number: contacts, copied records, notes, and errors of imports that contain it.

// recordsPerErasure is the number of records that one transaction erases.
const recordsPerErasure = 50

// ofNumber selects the numbers of records that are a number in E.164.
const ofNumber = ` FROM contact_phones WHERE org_id = $1 AND number = $2`

// CountForNumber returns the number of contacts and copied records that have a number in E.164, and of notes that mention
// it.
func (s *Service) CountForNumber(ctx context.Context, q db.Querier, org, phone string) (int, error) {
	const records = `SELECT count(*) FROM (SELECT DISTINCT source, record_id` + ofNumber + `) AS x`
	const notes = `SELECT count(*) FROM contact_notes WHERE org_id = $1 AND ` + digitsOfBody + ` LIKE $2`
	var n, m int
	if err := q.QueryRow(ctx, records, org, phone).Scan(&n); err != nil {
		return 0, fmt.Errorf("count contacts with a number: %w", err)
	}
	if err := q.QueryRow(ctx, notes, org, mentionPattern(phone)).Scan(&m); err != nil {
		return 0, fmt.Errorf("count notes with a number: %w", err)
	}
	return n + m, nil
}

// digitsOfBody is the text of a note without the signs with which people group the digits of a number.
const digitsOfBody = `replace(replace(replace(replace(replace(replace(body, ' ', ''), '-', ''), '.', ''), '/', ''), '(', ''), ')', '')`

func mentionPattern(phone string) string { return "%" + digitsOf(phone) + "%" }

// EraseForNumber erases up to recordsPerErasure records with a number, in the caller's transaction, and returns how many.
// The caller repeats it until it returns 0. A contact with no other number is deleted with all its data; from a
// contact with others, this number is removed. Copied records are deleted.
func (s *Service) EraseForNumber(ctx context.Context, tx db.Querier, org, phone string) (int, error) {
	o, err := s.cfg.Orgs.Get(ctx, org)
	if err != nil {
		return 0, fmt.Errorf("find organisation: %w", err)
	}
	n := readNumber(phone, o.Country)
	s.invalidateOnCommit(tx, []cacheKey{{org, number.Identity(n.e164)}, {org, tailMark + n.tail()}})
	all, err := recordsWithNumber(ctx, tx, org, phone)
	if err != nil {
		return 0, err
	}
	for _, x := range all {
		if x.source != "" {
			err = s.eraseEntry(ctx, tx, org, x.source, x.id, o.Country)
		} else {
			err = s.eraseNumberFrom(ctx, tx, org, x.id, phone, o.Country)
		}
		if err != nil {
			return 0, err
		}
	}
	if len(all) > 0 {
		return len(all), nil
	}
	return eraseMentions(ctx, tx, org, phone)
}

// recordsWithNumber returns up to recordsPerErasure records that have a number.
func recordsWithNumber(ctx context.Context, q db.Querier, org, phone string) (all []indexedRecord, err error) {
	const text = `SELECT DISTINCT source, record_id` + ofNumber + ` LIMIT $3`
	rows, err := q.Query(ctx, text, org, phone, recordsPerErasure)
	if err != nil {
		return nil, fmt.Errorf("find records with a number: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var x indexedRecord
		if err := rows.Scan(&x.source, &x.id); err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return all, rows.Err()
}

// eraseNumberFrom removes a number from a contact. If it was the only one, the contact is deleted.
func (s *Service) eraseNumberFrom(ctx context.Context, tx db.Querier, org, id, phone, country string) error {
	c, err := getContact(ctx, tx, org, id)
	if err != nil {
		return fmt.Errorf("get contact: %w", err)
	}
	after := c.withoutNumber(phone, country)
	if len(after.Phones) == 0 {
		return s.deleteWithData(ctx, tx, c, country)
	}
	after.UpdatedAt = db.At(s.cfg.Clock.Now())
	return s.update(ctx, tx, c, after, country)
}

// withoutNumber returns the contact without a number, including tags and custom fields that contain it.
func (c Contact) withoutNumber(phone, country string) Contact {
	c.Phones = slices.DeleteFunc(slices.Clone(c.Phones), func(p Phone) bool { return p.parse(country).e164 == phone })
	c.Tags = slices.DeleteFunc(slices.Clone(c.Tags), func(tag string) bool { return strings.Contains(digitsOf(tag), digitsOf(phone)) })
	custom := map[string]string{}
	for name, value := range c.Custom {
		if !strings.Contains(digitsOf(value), digitsOf(phone)) {
			custom[name] = value
		}
	}
	c.Custom = custom
	c.complete()
	return c
}

// deleteWithData deletes a contact and its data in other packages.
func (s *Service) deleteWithData(ctx context.Context, tx db.Querier, c Contact, country string) error {
	err := observe.Each(s.observers.erasures, func(o EraseObserver) error { return o.ContactErased(ctx, tx, c.OrgID, c.ID) })
	if err != nil {
		return err
	}
	if err := s.contactDeleted(ctx, tx, c); err != nil {
		return err
	}
	return s.deleteContact(ctx, tx, c, country)
}

// EraseEntry deletes the copy of a record of a connected system. The system's own record stays and may be copied
// again.
func (s *Service) EraseEntry(ctx context.Context, tx db.Querier, org, source, id string) error {
	o, err := s.cfg.Orgs.Get(ctx, org)
	if err != nil {
		return fmt.Errorf("find organisation: %w", err)
	}
	return s.eraseEntry(ctx, tx, org, source, id, o.Country)
}

func (s *Service) eraseEntry(ctx context.Context, tx db.Querier, org, source, id, country string) error {
	before, err := loadIndexedEntry(ctx, tx, org, source, id)
	if err != nil {
		return fmt.Errorf("find copied record: %w", err)
	}
	if err := s.reindex(ctx, tx, org, []indexedRecord{before}, nil, country); err != nil {
		return err
	}
	const q = `DELETE FROM contact_entries WHERE org_id = $1 AND source = $2 AND id = $3`
	if _, err := tx.Exec(ctx, q, org, source, id); err != nil {
		return fmt.Errorf("erase copied record: %w", err)
	}
	return nil
}

// eraseMentions deletes notes that contain a number, and clears the errors of imports that contain it.
func eraseMentions(ctx context.Context, tx db.Querier, org, phone string) (int, error) {
	const count = `UPDATE contacts SET notes_count = notes_count - (SELECT count(*) FROM contact_notes n
			WHERE n.org_id = $1 AND n.contact_id = contacts.id AND ` + digitsOfBody + ` LIKE $2)
		WHERE org_id = $1 AND id IN (SELECT contact_id FROM contact_notes WHERE org_id = $1 AND ` + digitsOfBody + ` LIKE $2)`
	if _, err := tx.Exec(ctx, count, org, mentionPattern(phone)); err != nil {
		return 0, fmt.Errorf("count notes of contacts: %w", err)
	}
	gone := 0
	for _, q := range []string{
		`DELETE FROM contact_notes WHERE org_id = $1 AND ` + digitsOfBody + ` LIKE $2`,
		`UPDATE contact_imports SET errors = '[]' WHERE org_id = $1 AND errors LIKE $2`,
	} {
		r, err := tx.Exec(ctx, q, org, mentionPattern(phone))
		if err != nil {
			return 0, fmt.Errorf("erase mentions of a number: %w", err)
		}
		n, err := r.RowsAffected()
		if err != nil {
			return 0, err
		}
		gone += int(n)
	}
	return gone, nil
}
