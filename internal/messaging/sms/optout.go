package sms

import (
	"context"
	"fmt"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/number"
)

// OptOut is a number that must not receive messages.
type OptOut struct {
	ID        string  `json:"id" example:"opt_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Phone     *string `json:"phone" doc:"Null once everything about the number was erased; no message is sent to it all the same"`
	NumberID  *string `json:"number_id" doc:"The number of yours it receives nothing from; null: from none"`
	Source    string  `json:"source" enum:"keyword,api"`
	Keyword   *string `json:"keyword" doc:"What was written"`
	MessageID *string `json:"message_id" doc:"The message that asked for it"`
	CreatedAt db.Time `json:"created_at"`
}

// digest returns the digest by which a number is recognised after it was erased. It is that of the canonical spelling.
func (s *Service) digest(org, phone string) string {
	return s.digestOf(org, number.Identity(phone))
}

// formerDigest returns the digest of the other spelling, by which opt-outs from before are recognised.
func (s *Service) formerDigest(org, phone string) string {
	_, other := number.Spellings(number.Identity(phone))
	return s.digestOf(org, other)
}

func (s *Service) digestOf(org, spelling string) string {
	return s.cfg.Digester.Digest("opt-out " + org + " " + spelling)
}

// isOptedOut reports whether a number must not receive messages from one of ours.
func (s *Service) isOptedOut(ctx context.Context, q db.Querier, org, numberID, phone string) (yes bool, err error) {
	const text = `SELECT EXISTS (SELECT 1 FROM opt_outs WHERE org_id = $1 AND digest IN ($2, $4) AND number_id IN ('', $3))`
	err = q.QueryRow(ctx, text, org, s.digest(org, phone), numberID, s.formerDigest(org, phone)).Scan(&yes)
	return yes, err
}

// addOptOut stores an opt-out and reports whether it is new.
func (s *Service) addOptOut(ctx context.Context, tx db.Querier, org, phone string, o *OptOut) (bool, error) {
	const q = `INSERT INTO opt_outs (org_id, digest, number_id, id, phone, source, keyword, message_id, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (org_id, digest, number_id) DO NOTHING`
	const former = `SELECT EXISTS (SELECT 1 FROM opt_outs WHERE org_id = $1 AND digest = $2 AND number_id = $3)`
	var known bool
	err := tx.QueryRow(ctx, former, org, s.formerDigest(org, phone), deref(o.NumberID)).Scan(&known)
	if err != nil || known {
		return false, err
	}
	o.ID, o.Phone, o.CreatedAt = db.NewID("opt"), &phone, db.At(s.cfg.Clock.Now())
	r, err := tx.Exec(ctx, q, org, s.digest(org, phone), deref(o.NumberID), o.ID, phone, o.Source, o.Keyword, o.MessageID, o.CreatedAt)
	if err != nil {
		return false, fmt.Errorf("write opt-out: %w", err)
	}
	n, err := r.RowsAffected()
	return n == 1, err
}

// removeOptOut deletes opt-outs of a number: from one number of ours, or from all if numberID is "".
func (s *Service) removeOptOut(ctx context.Context, tx db.Querier, org, phone, numberID string) (int64, error) {
	const q = `DELETE FROM opt_outs WHERE org_id = $1 AND digest IN ($2, $4) AND ($3 = '' OR number_id IN ('', $3))`
	r, err := tx.Exec(ctx, q, org, s.digest(org, phone), numberID, s.formerDigest(org, phone))
	if err != nil {
		return 0, fmt.Errorf("remove opt-out: %w", err)
	}
	return r.RowsAffected()
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// OptOutsIn is the request for a page of opt-outs.
type OptOutsIn struct {
	op.Paging
	NumberID string `query:"number_id" maxLength:"40"`
}

const optOutColumns = `id, phone, number_id, source, keyword, message_id, created_at`

func scanOptOut(scan func(...any) error) (OptOut, error) {
	var o OptOut
	var number db.Null
	err := scan(&o.ID, &o.Phone, &number, &o.Source, &o.Keyword, &o.MessageID, &o.CreatedAt)
	o.NumberID = number.Ptr()
	if number == "" {
		o.NumberID = nil
	}
	return o, err
}

// OptOuts returns opt-outs, newest first.
func (s *Service) OptOuts(ctx context.Context, in *OptOutsIn) (*op.Out[op.Page[OptOut]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	q := s.cfg.DB.Read(ctx)
	narrow := func() *db.Filter {
		return db.Where(`SELECT `+optOutColumns+` FROM opt_outs WHERE org_id = $1`, access.Org(ctx)).Equal("number_id", in.NumberID)
	}
	text, args := narrow().Page("created_at", true, after.Int, after.ID, in.Limit).SQL()
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("list opt-outs: %w", err)
	}
	defer rows.Close()
	var all []OptOut
	for rows.Next() {
		o, err := scanOptOut(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	page := op.Paged(ctx, in.Paging, all, func(o OptOut) op.Position { return op.Position{Int: o.CreatedAt.UnixMicro(), ID: o.ID} })
	return op.WithTotal(page, in.Paging, func() (int, error) { return narrow().Count(ctx, q) })
}

// OptOutIn is the request to add an opt-out.
type OptOutIn struct{ Body OptOutCreate }

// OptOutCreate has a number that must not receive messages.
type OptOutCreate struct {
	Phone    string `json:"phone" maxLength:"40" example:"+12025550143"`
	NumberID string `json:"number_id,omitempty" maxLength:"40" doc:"A number of yours; all of them unless given"`
}

// CreateOptOut adds an opt-out.
func (s *Service) CreateOptOut(ctx context.Context, in *OptOutIn) (*op.Out[OptOut], error) {
	org := access.Org(ctx)
	phone, ok, err := s.cfg.Numbers.ParseNumber(ctx, org, in.Body.Phone)
	if err != nil {
		return nil, err
	}
	var wrong []op.Violation
	if !ok {
		wrong = append(wrong, op.Field("phone", "invalid_e164", "not a valid telephone number"))
	}
	if in.Body.NumberID != "" {
		_, found, err := s.cfg.Numbers.OwnNumber(ctx, s.cfg.DB.Read(ctx), org, in.Body.NumberID)
		if err != nil {
			return nil, err
		}
		if !found {
			wrong = append(wrong, op.Field("number_id", "not_found", "no such number"))
		}
	}
	if len(wrong) > 0 {
		return nil, op.Invalid(wrong...)
	}
	o := OptOut{Source: "api", NumberID: db.Null(in.Body.NumberID).Ptr()}
	err = s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		fresh, err := s.addOptOut(ctx, tx, org, phone, &o)
		if err == nil && !fresh {
			err = op.Fail("already_exists", phone+" has opted out already")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &op.Out[OptOut]{Body: o, Location: op.Prefix + "/sms/opt-outs/" + phone}, nil
}

// OneOptOut has the number of an opt-out.
type OneOptOut struct {
	Phone    string `path:"phone" maxLength:"40" example:"+12025550143"`
	NumberID string `query:"number_id" maxLength:"40" doc:"Only the opt-out from this number of yours"`
}

// DeleteOptOut allows messages to a number again. Use it only if the recipient has asked for that.
func (s *Service) DeleteOptOut(ctx context.Context, in *OneOptOut) error {
	org := access.Org(ctx)
	phone, ok, err := s.cfg.Numbers.ParseNumber(ctx, org, number.FromURL(in.Phone))
	if err != nil {
		return err
	}
	if !ok {
		return op.NotFound("opt-out")
	}
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		n, err := s.removeOptOut(ctx, tx, org, phone, in.NumberID)
		if err == nil && n == 0 {
			err = op.NotFound("opt-out")
		}
		return err
	})
}
