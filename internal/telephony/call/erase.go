package call

import (
	"context"
	"fmt"
	"strings"

	"soniq/internal/platform/db"
	"soniq/internal/platform/observe"
	"soniq/internal/platform/personal"
)

// withNumber selects calls with a number on either side.
const withNumber = `(from_number = $2 OR to_number = $2)`

// endedNotHeld selects ended calls without a recording under legal hold.
const endedNotHeld = ` AND ended_at IS NOT NULL AND NOT EXISTS
	(SELECT 1 FROM recordings r WHERE r.org_id = calls.org_id AND r.call_id = calls.id AND r.legal_hold = TRUE AND r.status <> 'deleted')`

// CountEndedWith counts the calls with a number that can be erased.
func (s *Service) CountEndedWith(ctx context.Context, q db.Querier, org, phone string) (n int, err error) {
	err = q.QueryRow(ctx, `SELECT count(*) FROM calls WHERE org_id = $1 AND `+withNumber+endedNotHeld, org, phone).Scan(&n)
	return n, err
}

// EndedCall identifies a call that has ended.
type EndedCall struct {
	ID        string
	StartedAt db.Time
}

// EndedCallsWith lists the calls with a number that can be erased, at most limit.
func (s *Service) EndedCallsWith(ctx context.Context, q db.Querier, org, phone string, limit int) (all []EndedCall, err error) {
	const text = `SELECT id, started_at FROM calls WHERE org_id = $1 AND ` + withNumber + endedNotHeld + ` ORDER BY id LIMIT $3`
	rows, err := q.Query(ctx, text, org, phone, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var c EndedCall
		if err := rows.Scan(&c.ID, &c.StartedAt); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, rows.Err()
}

// HasActiveCallWith reports whether a call with a number is in progress.
func (s *Service) HasActiveCallWith(ctx context.Context, org, phone string) (live bool, err error) {
	const q = `SELECT EXISTS (SELECT 1 FROM calls WHERE org_id = $1 AND ` + withNumber + ` AND ended_at IS NULL)`
	err = s.cfg.DB.Read(ctx).QueryRow(ctx, q, org, phone).Scan(&live)
	return live, err
}

// Erase removes the personal data of a number from an ended call in the transaction tx. Recordings, notes, timeline
// and SIP messages are deleted, and the number in the record becomes anonymous. The existence, time and duration of
// the call remain.
func (s *Service) Erase(ctx context.Context, tx db.Querier, org, callID, phone string) error {
	err := observe.Each(s.observers.recordings, func(o RecordingStore) error { return o.EraseRecordings(ctx, tx, org, callID) })
	if err != nil {
		return err
	}
	if err := s.eraseTimeline(ctx, tx, org, callID); err != nil {
		return fmt.Errorf("erase timeline of call %s: %w", callID, err)
	}
	if _, err := tx.Exec(ctx, `DELETE FROM notes WHERE org_id = $1 AND call_id = $2`, org, callID); err != nil {
		return fmt.Errorf("erase notes of call %s: %w", callID, err)
	}
	const legs = `UPDATE legs SET number = 'anonymous' WHERE org_id = $1 AND call_id = $2 AND number = $3`
	if _, err := tx.Exec(ctx, legs, org, callID, phone); err != nil {
		return fmt.Errorf("erase number from legs of %s: %w", callID, err)
	}
	const record = `UPDATE calls SET from_number = CASE WHEN from_number = $3 THEN 'anonymous' ELSE from_number END,
			to_number = CASE WHEN to_number = $3 THEN 'anonymous' ELSE to_number END,
			from_name = NULL, contact_id = NULL, contact = NULL, transfer = NULL, transferred_to = NULL, disposition = NULL,
			disposition_label = NULL, disposition_by = NULL, disposition_at = NULL,
			notes_count = 0, metadata = '{}', client_reference = NULL,
			transcript_id = NULL, ai_summary = NULL, sentiment = NULL, revision = revision + 1 WHERE org_id = $1 AND id = $2`
	if _, err := tx.Exec(ctx, record, org, callID, phone); err != nil {
		return fmt.Errorf("erase number from call %s: %w", callID, err)
	}
	return nil
}

// CountTagsWith counts the tags that name a number, in whatever way it is written.
func (s *Service) CountTagsWith(ctx context.Context, q db.Querier, org, phone string) (int, error) {
	all, err := tagsWith(ctx, q, org, phone)
	return len(all), err
}

// EraseTagsWith deletes the tags that name a number, and takes them off all calls. Of a tag with the number in its description alone, it
// deletes the description.
func (s *Service) EraseTagsWith(ctx context.Context, tx db.Querier, org, phone string) (int, error) {
	all, err := tagsWith(ctx, tx, org, phone)
	if err != nil {
		return 0, err
	}
	for _, t := range all {
		if strings.Contains(onlyDigits(t.Name), onlyDigits(phone)) {
			err = deleteTag(ctx, tx, org, t)
		} else {
			_, err = tx.Exec(ctx, `UPDATE tags SET description = NULL WHERE org_id = $1 AND id = $2`, org, t.ID)
		}
		if err != nil {
			return 0, fmt.Errorf("erase number from tag %s: %w", t.ID, err)
		}
	}
	return len(all), nil
}

func tagsWith(ctx context.Context, q db.Querier, org, phone string) (found []Tag, err error) {
	rows, err := q.Query(ctx, `SELECT `+tagColumns+` FROM tags WHERE org_id = $1`, org)
	if err != nil {
		return nil, fmt.Errorf("find tags with a number: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		t, err := scanTag(rows)
		if err != nil {
			return nil, err
		}
		if strings.Contains(onlyDigits(t.Name), onlyDigits(phone)) || strings.Contains(onlyDigits(stringOrEmpty(t.Description)),
			onlyDigits(phone)) {
			found = append(found, t)
		}
	}
	return found, rows.Err()
}

func onlyDigits(text string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, text)
}

// CallsToExport returns the ended calls with a number, also those under legal hold, whose id is above after; at most limit.
func (s *Service) CallsToExport(ctx context.Context, q db.Querier, org, phone, after string, limit int) ([]string, error) {
	const text = `SELECT id FROM calls WHERE org_id = $1 AND ` + withNumber + ` AND ended_at IS NOT NULL AND id > $3 ORDER BY id LIMIT $4`
	return db.Strings(ctx, q, "find calls to export", text, org, phone, after, limit)
}

// ExportCall exports the record of a call with its legs, notes, tags and timeline.
func (s *Service) ExportCall(ctx context.Context, q db.Querier, org, callID string, w personal.Writer) error {
	for kind, text := range map[string]string{
		"calls": `SELECT * FROM calls WHERE org_id = $1 AND id = $2`,
		"legs":  `SELECT * FROM legs WHERE org_id = $1 AND call_id = $2 ORDER BY id`,
		"notes": `SELECT * FROM notes WHERE org_id = $1 AND call_id = $2 ORDER BY id`,
		"call_tags": `SELECT c.call_id, c.tag_id, t.name FROM call_tags c JOIN tags t ON t.org_id = c.org_id AND t.id = c.tag_id
			WHERE c.org_id = $1 AND c.call_id = $2 ORDER BY t.name`,
	} {
		if err := personal.Rows(ctx, q, w, kind, text, org, callID); err != nil {
			return err
		}
	}
	x, err := s.storedTimeline(ctx, org, callID)
	if err != nil || len(x.Steps)+len(x.Messages) == 0 {
		return err
	}
	return w.Item("call_timelines", map[string]any{"call_id": callID, "steps": x.Steps, "messages": x.Messages})
}

// ExportTagsWith exports the tags that name a number.
func (s *Service) ExportTagsWith(ctx context.Context, q db.Querier, org, phone string, w personal.Writer) error {
	all, err := tagsWith(ctx, q, org, phone)
	for _, t := range all {
		if err := w.Item("tags", t); err != nil {
			return err
		}
	}
	return err
}
