// Package erasure erases the personal data about a telephone number (right to erasure, GDPR Art. 17): recordings,
// transcripts, summaries, messages, and the number itself in every table. It exports the same data to a file (right of access, Art. 15).
package erasure

import (
	"context"
	"fmt"
	"log/slog"

	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/platform/personal"
	"soniq/internal/platform/wiring"
	"soniq/internal/telephony/call"
)

// Store is a package, or a part of one, that stores data about numbers.
type Store interface {
	// Count returns the number of items that Erase would erase.
	Count(ctx context.Context, q db.Querier, org, phone string) (int, error)
	// Erase erases a batch of items in the caller's transaction and returns its size. It is called until it returns
	// 0.
	Erase(ctx context.Context, tx db.Querier, org, phone string) (int, error)
	// Export writes everything that Erase would erase, and what it keeps because of a legal hold.
	Export(ctx context.Context, q db.Querier, org, phone string, w personal.Writer) error
}

// NamedStore is a store with the name that errors show.
type NamedStore struct {
	Name string
	Store
}

// Sealer encrypts the number in the table of erasures.
type Sealer interface {
	Seal(plain, place []byte) ([]byte, error)
	Unseal(sealed, place []byte) ([]byte, error)
}

// Numbers reads numbers.
type Numbers interface {
	// ParseNumber parses a number as people write it in the country of the organisation, and returns it in E.164. ok
	// is false if it is not a number.
	ParseNumber(ctx context.Context, org, text string) (e164 string, ok bool, err error)
	// IsOwnNumber reports whether a number belongs to the organisation.
	IsOwnNumber(ctx context.Context, org, e164 string) (bool, error)
}

// Calls reports whether a call with a number is in progress. The erasure waits until it has ended.
type Calls interface {
	HasActiveCallWith(ctx context.Context, org, e164 string) (bool, error)
}

// StorageQuota returns an error if the storage quota of the organisation is used up.
type StorageQuota interface {
	CheckStorage(ctx context.Context, org string) error
}

// DoneObserver is notified when everything is erased, for data outside the database.
type DoneObserver interface {
	NumberErased(ctx context.Context, org string) error
}

// Config has the dependencies of a Service.
type Config struct {
	DB      *db.DB
	Jobs    *job.Queue
	Seal    Sealer
	Clock   clock.Clock `wiring:"optional"`
	Numbers Numbers
	Calls   Calls
	Stores  []NamedStore // erased and exported in this order

	// For exports.
	Files        call.Files
	Links        call.Links
	StorageQuota StorageQuota
	Log          *slog.Logger
	MayDelete    clock.DeletionGate `wiring:"optional"` // asked before the file of an expired export is deleted
}

// Service erases the data about numbers. Create it with New.
type Service struct {
	cfg       Config
	observers []DoneObserver
}

// New returns a service.
func New(c Config) *Service {
	wiring.Check(c)
	c.Clock, c.Links.Clock = clock.OrSystem(c.Clock), clock.OrSystem(c.Links.Clock)
	return &Service{cfg: c}
}

// Observe adds an observer. Call it before the first erasure.
func (s *Service) Observe(o DoneObserver) { s.observers = append(s.observers, o) }

// sealAAD returns the associated data that binds a sealed number to its row.
func sealAAD(org, id string) []byte { return []byte(org + "|erasures|" + id + "|phone") }

// maskedNumber returns the last two digits of a number, so that the number cannot be recovered.
func maskedNumber(e164 string) string { return "…" + e164[max(0, len(e164)-2):] }

func (s *Service) insert(ctx context.Context, tx db.Querier, org, id, phone, reason, by string, items int) error {
	sealed, err := s.cfg.Seal.Seal([]byte(phone), sealAAD(org, id))
	if err != nil {
		return fmt.Errorf("seal number: %w", err)
	}
	const q = `INSERT INTO erasures (org_id, id, phone, phone_hint, reason, status, items, requested_by, created_at)
		VALUES ($1, $2, $3, $4, $5, 'pending', $6, $7, $8)`
	_, err = tx.Exec(ctx, q, org, id, sealed, maskedNumber(phone), db.Null(reason), items, by, db.At(s.cfg.Clock.Now()))
	return err
}

// phone returns the number of a pending erasure; "" if it is finished or does not exist.
func (s *Service) phone(ctx context.Context, org, id string) (string, error) {
	var sealed []byte
	err := s.cfg.DB.Read(ctx).QueryRow(ctx, `SELECT phone FROM erasures WHERE org_id = $1 AND id = $2`, org, id).Scan(&sealed)
	if db.IsNone(err) || err == nil && sealed == nil {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	plain, err := s.cfg.Seal.Unseal(sealed, sealAAD(org, id))
	return string(plain), err
}

func (s *Service) finish(ctx context.Context, tx db.Querier, org, id string, items int) error {
	const q = `UPDATE erasures SET status = 'done', phone = NULL, items = $3, finished_at = $4 WHERE org_id = $1 AND id = $2`
	_, err := tx.Exec(ctx, q, org, id, items, db.At(s.cfg.Clock.Now()))
	return err
}
