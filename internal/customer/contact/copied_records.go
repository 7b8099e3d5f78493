package contact

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"soniq/internal/platform/db"
)

// Records that are copied from connected systems (contact_entries), so that the index finds them.

const (
	entryBatch = 100
	// MaxEntries bounds the copied records of a connection.
	MaxEntries = 1_000_000
	maxEntryID = 200
)

// Round is one read of a connected system. Records are passed to Add. Finish deletes the records that were not added
// in this round.
type Round struct {
	s               *Service
	org, connection string
	country, name   string
	batch           []Record
	total           int
}

// NewRound starts a read of a system's records. Rounds of one connection must not overlap. If a round is not
// finished, its added records stay.
func (s *Service) NewRound(ctx context.Context, org, connection string) (*Round, error) {
	o, err := s.cfg.Orgs.Get(ctx, org)
	if err != nil {
		return nil, fmt.Errorf("find organisation: %w", err)
	}
	return &Round{s: s, org: org, connection: connection, country: o.Country, name: db.NewID("rnd")}, nil
}

// Add stores a record. Records without an id, or with neither number nor address, are skipped.
func (r *Round) Add(ctx context.Context, x Record) error {
	if x.ExternalID == "" || len(x.ExternalID) > maxEntryID || len(x.Phones) == 0 && x.Email == "" && len(x.Emails) == 0 {
		return nil
	}
	if r.total++; r.total > MaxEntries {
		return fmt.Errorf("a connection may bring %d people", MaxEntries)
	}
	x.Phones, x.Emails = x.Phones[:min(len(x.Phones), maxPhones)], x.Emails[:min(len(x.Emails), maxPhones)]
	if r.batch = append(r.batch, x); len(r.batch) < entryBatch {
		return nil
	}
	return r.flush(ctx)
}

// Finish writes the last batch and deletes the records that the system no longer has. It returns the number of
// records.
func (r *Round) Finish(ctx context.Context) (int, error) {
	if err := r.flush(ctx); err != nil {
		return 0, err
	}
	return r.total, r.s.deleteStaleEntries(ctx, r.org, r.connection, r.name)
}

// Remove deletes a record that the system no longer has.
func (r *Round) Remove(ctx context.Context, id string) error {
	if err := r.flush(ctx); err != nil {
		return err
	}
	err := r.s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		return r.s.eraseEntry(ctx, tx, r.org, r.connection, id, r.country)
	})
	if err != nil {
		return fmt.Errorf("remove record of %s: %w", r.connection, err)
	}
	return nil
}

// FinishPartial writes the last batch and keeps the records that were not added in this round. It returns the number
// of records of the connection.
func (r *Round) FinishPartial(ctx context.Context) (n int, err error) {
	if err := r.flush(ctx); err != nil {
		return 0, err
	}
	const q = `SELECT count(*) FROM contact_entries WHERE org_id = $1 AND source = $2`
	if err := r.s.cfg.DB.Read(ctx).QueryRow(ctx, q, r.org, r.connection).Scan(&n); err != nil {
		return 0, fmt.Errorf("count records of %s: %w", r.connection, err)
	}
	return n, nil
}

// flush writes a batch. Unchanged records are only marked as seen.
func (r *Round) flush(ctx context.Context) error {
	batch := prepareEntries(r.batch)
	r.batch = nil
	if len(batch) == 0 {
		return nil
	}
	err := r.s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error { return r.put(ctx, tx, batch) })
	if err != nil {
		return fmt.Errorf("keep records of %s: %w", r.connection, err)
	}
	return nil
}

// storedRecord is a record in its stored form, with a digest to detect changes. The digest covers the JSON of Record:
// renaming a field of Record changes every digest.
type storedRecord struct {
	Record
	at     time.Time
	digest string
}

// prepareEntries returns the batch in its stored form. Of two records with the same id it keeps the later.
func prepareEntries(batch []Record) []storedRecord {
	out := make([]storedRecord, 0, len(batch))
	place := map[string]int{}
	for _, x := range batch {
		x.Name, x.Company, x.Title, x.Email = truncate(normalizeText(x.Name)), truncate(normalizeText(x.Company)),
			truncate(normalizeText(x.Title)), truncate(normalizeText(x.Email))
		one := storedRecord{Record: x, at: x.UpdatedAt}
		x.UpdatedAt = time.Time{}
		text, _ := json.Marshal(x)
		sum := sha256.Sum256(text)
		one.digest = base64.RawStdEncoding.EncodeToString(sum[:])
		if i, twice := place[x.ExternalID]; twice {
			out[i] = one
			continue
		}
		place[x.ExternalID] = len(out)
		out = append(out, one)
	}
	return out
}

// put writes a batch: unchanged records are marked as seen, the others are written and indexed.
func (r *Round) put(ctx context.Context, tx db.Querier, batch []storedRecord) error {
	ids := make([]string, len(batch))
	for i, x := range batch {
		ids[i] = x.ExternalID
	}
	known, err := r.digests(ctx, tx, ids)
	if err != nil {
		return err
	}
	var same []string
	var rows [][]any
	var before, after []indexedRecord
	for _, x := range batch {
		digest, there := known[x.ExternalID]
		if there && digest == x.digest {
			same = append(same, x.ExternalID)
			continue
		}
		if there {
			was, err := loadIndexedEntry(ctx, tx, r.org, r.connection, x.ExternalID)
			if err != nil {
				return err
			}
			before = append(before, was)
		}
		rows, after = append(rows, r.row(x)), append(after, r.toIndexed(x))
	}
	if err := r.markSeen(ctx, tx, same); err != nil {
		return err
	}
	if err := upsertEntries(ctx, tx, rows); err != nil {
		return err
	}
	return r.s.reindex(ctx, tx, r.org, before, after, r.country)
}

// digests returns the digests of the stored records, by id.
func (r *Round) digests(ctx context.Context, tx db.Querier, ids []string) (map[string]string, error) {
	q, args := db.Where(`SELECT id, digest FROM contact_entries WHERE org_id = $1 AND source = $2`, r.org, r.connection).In("id", ids).SQL()
	rows, err := tx.Query(ctx, q, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	known := map[string]string{}
	for rows.Next() {
		var id, digest string
		if err := rows.Scan(&id, &digest); err != nil {
			return nil, err
		}
		known[id] = digest
	}
	return known, rows.Err()
}

// markSeen marks records as seen in this round.
func (r *Round) markSeen(ctx context.Context, tx db.Querier, ids []string) error {
	return db.Bulk(len(ids), func(from, to int) error {
		const text = `UPDATE contact_entries SET round = $3 WHERE org_id = $1 AND source = $2`
		q, args := db.Where(text, r.org, r.connection, r.name).In("id", ids[from:to]).SQL()
		_, err := tx.Exec(ctx, q, args...)
		return err
	})
}

func (r *Round) row(x storedRecord) []any {
	if x.at.IsZero() {
		x.at = r.s.cfg.Clock.Now()
	}
	return []any{r.org, r.connection, x.ExternalID, x.Name, x.Company, x.Title, x.Email, truncate(x.URL), x.digest, r.name, db.At(x.at)}
}

func (r *Round) toIndexed(x storedRecord) indexedRecord {
	i := indexedRecord{source: r.connection, id: x.ExternalID, emails: append([]string{x.Email}, x.Emails...)}
	for _, p := range x.Phones {
		i.phones = append(i.phones, Phone{Number: p})
	}
	return i
}

// upsertEntries writes complete rows. The first column of each is the organisation.
func upsertEntries(ctx context.Context, tx db.Querier, rows [][]any) error {
	return db.Bulk(len(rows), func(from, to int) error {
		q := `INSERT INTO contact_entries (org_id, source, id, name, company, title, email, url, digest, round, updated_at)
			VALUES ` + db.Values(1, to-from, make([]string, 11)...) + `
			ON CONFLICT (org_id, source, id) DO UPDATE SET name = excluded.name, company = excluded.company, title = excluded.title,
				email = excluded.email, url = excluded.url, digest = excluded.digest, round = excluded.round,
				updated_at = excluded.updated_at`
		_, err := tx.Exec(ctx, q, slices.Concat(rows[from:to]...)...)
		return err
	})
}

func truncate(text string) string {
	const most = 200
	if r := []rune(text); len(r) > most {
		return string(r[:most])
	}
	return text
}

// loadIndexedEntry returns the index rows of a copied record.
func loadIndexedEntry(ctx context.Context, q db.Querier, org, source, id string) (indexedRecord, error) {
	x := indexedRecord{source: source, id: id}
	const text = `SELECT number, digits FROM contact_phones WHERE org_id = $1 AND source = $2 AND record_id = $3`
	rows, err := q.Query(ctx, text, org, source, id)
	if err != nil {
		return x, err
	}
	defer rows.Close()
	for rows.Next() {
		var number, digits string
		if err := rows.Scan(&number, &digits); err != nil {
			return x, err
		}
		if number == "" {
			number = digits
		}
		x.phones = append(x.phones, Phone{Number: number})
	}
	if err := rows.Err(); err != nil {
		return x, err
	}
	rows.Close()
	x.emails, err = entryEmails(ctx, q, org, source, id)
	return x, err
}

func entryEmails(ctx context.Context, q db.Querier, org, source, id string) (all []string, err error) {
	const text = `SELECT email FROM contact_emails WHERE org_id = $1 AND source = $2 AND record_id = $3`
	return db.Strings(ctx, q, "list e-mail addresses", text, org, source, id)
}

// deleteStaleEntries deletes the records of a connection that were not seen in the given round, a hundred per
// transaction. round "" deletes all.
func (s *Service) deleteStaleEntries(ctx context.Context, org, connection, round string) error {
	for {
		gone := 0
		err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
			ids, err := staleEntries(ctx, tx, org, connection, round)
			gone = len(ids)
			for _, id := range ids {
				for _, q := range []string{
					`DELETE FROM contact_phones WHERE org_id = $1 AND source = $2 AND record_id = $3`,
					`DELETE FROM contact_emails WHERE org_id = $1 AND source = $2 AND record_id = $3`,
					`DELETE FROM contact_entries WHERE org_id = $1 AND source = $2 AND id = $3`,
				} {
					if _, err := tx.Exec(ctx, q, org, connection, id); err != nil {
						return err
					}
				}
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("remove old records of %s: %w", connection, err)
		}
		if gone < entryBatch {
			s.InvalidateOrg(org)
			return nil
		}
	}
}

func staleEntries(ctx context.Context, q db.Querier, org, connection, round string) ([]string, error) {
	const text = `SELECT id FROM contact_entries WHERE org_id = $1 AND source = $2 AND round <> $3 LIMIT 100`
	return db.Strings(ctx, q, "find stale records", text, org, connection, round)
}

// DeleteEntries deletes all copied records of a connection, in several transactions.
func (s *Service) DeleteEntries(ctx context.Context, org, connection string) error {
	return s.deleteStaleEntries(ctx, org, connection, "")
}
