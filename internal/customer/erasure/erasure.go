// Package erasure removes everything that is kept about a telephone number: what was said, what came of it, and where the
// number itself stands.
package erasure

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
)

// A Keeper is a room, or a part of one, that keeps things about numbers.
type Keeper struct {
	Name string
	// Count tells how many things are kept that Erase would erase.
	Count func(ctx context.Context, q db.Querier, org, phone string) (int, error)
	// Erase erases some of them at once, in the caller's transaction, and returns how many. It is called until it returns 0.
	Erase func(ctx context.Context, tx db.Querier, org, phone string) (int, error)
}

// Sealer keeps the number from being read in the table of erasures.
type Sealer interface {
	Seal(plain, place []byte) ([]byte, error)
	Unseal(sealed, place []byte) ([]byte, error)
}

// Config is what the room is built from.
type Config struct {
	DB   *db.DB
	Jobs *job.Queue
	Seal Sealer
	Now  func() time.Time
}

// Service erases numbers.
type Service struct {
	Config
	// Keepers are asked one after the other.
	Keepers []Keeper
	// Number reads a number as people write it in the country of the organisation, and returns it in E.164.
	Number func(ctx context.Context, org, text string) (e164 string, ok bool, err error)
	// Own reports whether a number is one of the organisation's own; nil: none is.
	Own func(ctx context.Context, org, e164 string) (bool, error)
	// Busy reports whether a call with the number is in progress: erasing waits until it is over; nil: never.
	Busy func(ctx context.Context, org, e164 string) (bool, error)
	// Done is told when everything is erased, for what is kept outside the database; may be nil.
	Done func(ctx context.Context, org string) error
}

// New builds the room.
func New(c Config) *Service { return &Service{Config: c} }

// place is what a sealed number is bound to.
func place(org, id string) []byte { return []byte(org + "|erasures|" + id + "|phone") }

// hint is a number that nobody is reached at: all but its last two digits are left out.
func hint(e164 string) string { return "…" + e164[max(0, len(e164)-2):] }

func (s *Service) insert(ctx context.Context, tx db.Querier, org, id, phone, reason, by string, items int) error {
	sealed, err := s.Seal.Seal([]byte(phone), place(org, id))
	if err != nil {
		return fmt.Errorf("seal number: %w", err)
	}
	const q = `INSERT INTO erasures (org_id, id, phone, phone_hint, reason, status, items, requested_by, created_at)
		VALUES ($1, $2, $3, $4, $5, 'pending', $6, $7, $8)`
	_, err = tx.Exec(ctx, q, org, id, sealed, hint(phone), db.Null(reason), items, by, db.At(s.Now()))
	return err
}

// phone is the number of an erasure that is not done; "" of one that is.
func (s *Service) phone(ctx context.Context, org, id string) (string, error) {
	var sealed []byte
	err := s.DB.Read(ctx).QueryRow(ctx, `SELECT phone FROM erasures WHERE org_id = $1 AND id = $2`, org, id).Scan(&sealed)
	if db.IsNone(err) || err == nil && sealed == nil {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	plain, err := s.Seal.Unseal(sealed, place(org, id))
	return string(plain), err
}

func (s *Service) finish(ctx context.Context, tx db.Querier, org, id string, items int) error {
	const q = `UPDATE erasures SET status = 'done', phone = NULL, items = $3, finished_at = $4 WHERE org_id = $1 AND id = $2`
	_, err := tx.Exec(ctx, q, org, id, items, db.At(s.Now()))
	return err
}
