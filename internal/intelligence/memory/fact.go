package memory

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/personal"
	"soniq/internal/telephony/number"
)

// KindFact is the kind of facts that users and programs add to a number.
const KindFact = "fact"

const (
	maxFacts    = 100 // per number
	maxFactText = 500 // characters
)

// Fact is a statement about a caller.
type Fact struct {
	ID        string  `json:"id"`
	Text      string  `json:"text"`
	At        db.Time `json:"at" doc:"When it was written down"`
	Source    string  `json:"source" enum:"user,api_key" doc:"Who wrote it down"`
	ExpiresAt db.Time `json:"expires_at" nullable:"true"`
}

// NewFact is a fact to add.
type NewFact struct {
	Phone, Text, By string    // By: id of the user or API key
	ExpiresAt       time.Time // zero: never
}

// Facts returns the facts of a number that have not expired, newest first. Use it to inform an agent or a program
// about a caller.
func (s *Service) Facts(ctx context.Context, org, phone string) ([]Fact, error) {
	all, err := factsOf(ctx, s.db.Read(ctx), org, s.phone(ctx, org, phone), db.At(s.now()))
	return all, wrapError("read facts of a number", err)
}

// addFact inserts a fact in the caller's transaction. ok is false if the number already has maxFacts.
func (s *Service) addFact(ctx context.Context, tx db.Querier, org string, f NewFact) (id string, ok bool, err error) {
	now := db.At(s.now())
	var n int
	const count = `SELECT count(*) FROM memory_facts WHERE org_id = $1 AND phone IN ($2, $4) AND kind = 'fact' AND (expires_at IS NULL OR expires_at > $3)`
	given, other := number.Spellings(f.Phone)
	if err := tx.QueryRow(ctx, count, org, given, now, other).Scan(&n); err != nil || n >= maxFacts {
		return "", false, wrapError("count facts", err)
	}
	policy, err := s.redactions.Redaction(ctx, org)
	if err != nil {
		return "", false, err
	}
	id, f.Text = db.NewID("mem"), policy.Text(f.Text)
	const q = `INSERT INTO memory_facts (org_id, phone, id, text, created_by, created_at, expires_at, key, model, vector, terms)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`
	r := s.factRow(ctx, f.Text)
	_, err = tx.Exec(ctx, q, org, f.Phone, id, f.Text, f.By, now, db.At(f.ExpiresAt), r.key, r.model, r.vector.bytes(),
		encodeTerms(r.terms))
	return id, true, wrapError("write fact", err)
}

func factsOf(ctx context.Context, q db.Querier, org, phone string, now db.Time) ([]Fact, error) {
	const text = `SELECT id, text, created_at, created_by, expires_at FROM memory_facts
		WHERE org_id = $1 AND phone IN ($2, $5) AND kind = 'fact' AND (expires_at IS NULL OR expires_at > $3) ORDER BY created_at DESC,
		id DESC LIMIT $4`
	given, other := number.Spellings(phone)
	rows, err := q.Query(ctx, text, org, given, now, maxFacts, other)
	if err != nil {
		return nil, err
	}
	out := []Fact{}
	err = scanAll(rows, func(rows *sql.Rows) error {
		var f Fact
		err := rows.Scan(&f.ID, &f.Text, &f.At, &f.Source, &f.ExpiresAt)
		f.Source = sourceOf(f.Source)
		out = append(out, f)
		return err
	})
	return out, err
}

// sourceOf returns "user" or "api_key" by the prefix of an id.
func sourceOf(id string) string {
	if strings.HasPrefix(id, "usr_") {
		return "user"
	}
	return "api_key"
}

// withPhone selects facts about a number, and facts whose text contains it, also with signs that group its digits.
const withPhone = `org_id = $1 AND (phone = $2 OR replace(replace(replace(replace(replace(replace(text, ' ', ''), '-', ''), '.', ''), '/',
	''), '(', ''), ')', '') LIKE $3)`

func likeNumber(phone string) string { return "%" + strings.TrimPrefix(phone, "+") + "%" }

// CountFacts returns the number of facts about a phone number or with the number in their text.
func (s *Service) CountFacts(ctx context.Context, q db.Querier, org, phone string) (n int, err error) {
	err = q.QueryRow(ctx, `SELECT count(*) FROM memory_facts WHERE `+withPhone, org, phone, likeNumber(phone)).Scan(&n)
	return n, err
}

// EraseFacts deletes the facts about a phone number or with the number in their text, and returns how many.
func (s *Service) EraseFacts(ctx context.Context, tx db.Querier, org, phone string) (int, error) {
	r, err := tx.Exec(ctx, `DELETE FROM memory_facts WHERE `+withPhone, org, phone, likeNumber(phone))
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	return int(n), err
}

// ExportFacts exports the facts about a phone number or with the number in their text.
func (s *Service) ExportFacts(ctx context.Context, q db.Querier, org, phone string, w personal.Writer) error {
	const text = `SELECT * FROM memory_facts WHERE ` + withPhone + ` ORDER BY id`
	return personal.Rows(ctx, q, w, "memory_facts", text, org, phone, likeNumber(phone))
}

// DeleteExpiredFacts deletes expired facts of all organisations, 500 per transaction, and returns how many.
func (s *Service) DeleteExpiredFacts(ctx context.Context, now time.Time) (gone int64, err error) {
	// tenant: what has expired is swept over all organisations
	const q = `DELETE FROM memory_facts WHERE (org_id, id) IN (SELECT org_id, id FROM memory_facts WHERE expires_at <= $1 LIMIT 500)`
	for n := int64(1); n > 0 && err == nil && ctx.Err() == nil; gone += n {
		n = 0
		err = s.db.Tx(ctx, func(tx db.Querier) error {
			r, err := tx.Exec(ctx, q, db.At(now))
			if err != nil {
				return fmt.Errorf("sweep facts: %w", err)
			}
			n, err = r.RowsAffected()
			return err
		})
	}
	return gone, err
}
