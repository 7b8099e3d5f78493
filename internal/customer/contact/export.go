package contact

import (
	"context"
	"encoding/json"
	"strings"

	"soniq/internal/platform/db"
	"soniq/internal/platform/personal"
)

// Export of a number: the same records as those of its erasure. A contact with further numbers is exported as a whole, with all notes.

// ContactsWithNumber returns the ids of the contacts that have a number in E.164.
func (s *Service) ContactsWithNumber(ctx context.Context, q db.Querier, org, phone string) ([]string, error) {
	const text = `SELECT DISTINCT record_id` + ofNumber + ` AND source = '' ORDER BY record_id`
	return db.Strings(ctx, q, "find contacts with a number", text, org, phone)
}

// ExportForNumber exports the contacts and copied records that have a number in E.164, and the notes and errors of imports that contain it.
func (s *Service) ExportForNumber(ctx context.Context, q db.Querier, org, phone string, w personal.Writer) error {
	const contacts, records = `(SELECT record_id` + ofNumber + ` AND source = '')`, `(SELECT source, record_id` + ofNumber + `)`
	for kind, text := range map[string]string{
		"contacts":        `SELECT * FROM contacts WHERE org_id = $1 AND id IN ` + contacts + ` ORDER BY id`,
		"contact_phones":  `SELECT * FROM contact_phones WHERE org_id = $1 AND (source, record_id) IN ` + records + ` ORDER BY source, record_id, position`,
		"contact_emails":  `SELECT * FROM contact_emails WHERE org_id = $1 AND (source, record_id) IN ` + records + ` ORDER BY source, record_id, email`,
		"contact_entries": `SELECT * FROM contact_entries WHERE org_id = $1 AND (source, id) IN ` + records + ` ORDER BY source, id`,
		"contact_notes":   `SELECT * FROM contact_notes WHERE org_id = $1 AND contact_id IN ` + contacts + ` ORDER BY id`,
	} {
		if err := personal.Rows(ctx, q, w, kind, text, org, phone); err != nil {
			return err
		}
	}
	const notes = `SELECT * FROM contact_notes WHERE org_id = $1 AND ` + digitsOfBody + ` LIKE $2 ORDER BY id`
	if err := personal.Rows(ctx, q, w, "contact_notes", notes, org, mentionPattern(phone)); err != nil {
		return err
	}
	return exportImportErrors(ctx, q, org, phone, w)
}

// exportImportErrors exports the errors of imports that contain a number. Errors about others stay out.
func exportImportErrors(ctx context.Context, q db.Querier, org, phone string, w personal.Writer) error {
	const text = `SELECT id, errors FROM contact_imports WHERE org_id = $1 AND errors LIKE $2 ORDER BY id`
	return db.ForEach(ctx, q, "export errors of imports", text, []any{org, mentionPattern(phone)}, func(scan func(...any) error) error {
		var id string
		var all db.JSON[[]json.RawMessage]
		if err := scan(&id, &all); err != nil {
			return err
		}
		for _, e := range all.V {
			if !strings.Contains(string(e), digitsOf(phone)) {
				continue
			}
			if err := w.Item("contact_imports", map[string]any{"id": id, "error": e}); err != nil {
				return err
			}
		}
		return nil
	})
}
