package voicemail

import (
	"context"
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/seal"
)

// PINResult is the result of a PIN attempt.
type PINResult int

// The results of a PIN attempt.
const (
	PINAccepted PINResult = iota
	PINWrong              // wrong PIN
	PINLocked             // too many wrong PINs: attempts are refused until Until
	PINNotSet             // no PIN is set: only the user's own phones have access
)

// PINAttempt describes the outcome of a PIN attempt.
type PINAttempt struct {
	Result     PINResult
	Until      time.Time // end of the lock, with PINLocked
	JustLocked bool      // this attempt locked the mailbox
}

// maxPINTries is how many wrong PINs lock a mailbox.
const maxPINTries = 3

// lockDurations lists the durations of the first, second and further locks. A correct PIN resets the count.
var lockDurations = []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 24 * time.Hour}

// pbkdf2Iterations makes trying all PINs slow even for an attacker with the database and the master key.
const pbkdf2Iterations = 50_000

// SetPIN sets a user's PIN and ends the locks; "" removes the PIN. Only a digest is stored.
func (s *Service) SetPIN(ctx context.Context, tx db.Querier, org, user, pin string) error {
	if pin == "" {
		_, err := tx.Exec(ctx, `DELETE FROM mailbox_pins WHERE org_id = $1 AND user_id = $2`, org, user)
		return err
	}
	salt := seal.Random(16)
	digest, err := s.digest(salt, pin)
	if err != nil {
		return err
	}
	const text = `INSERT INTO mailbox_pins (org_id, user_id, salt, digest, wrong, locks, locked_until, updated_at)
		VALUES ($1, $2, $3, $4, 0, 0, NULL, $5)
		ON CONFLICT (org_id, user_id) DO UPDATE SET salt = $3, digest = $4, wrong = 0, locks = 0, locked_until = NULL,
			outside_wrong = 0, outside_locks = 0, outside_locked_until = NULL, updated_at = $5`
	_, err = tx.Exec(ctx, text, org, user, salt, digest, db.At(s.cfg.Clock.Now()))
	return err
}

func (s *Service) digest(salt, pin string) (string, error) {
	b, err := pbkdf2.Key(sha256.New, s.cfg.Digester.Digest(pin), []byte(salt), pbkdf2Iterations, 32)
	return hex.EncodeToString(b), err
}

// HasPIN reports whether a user has set a PIN.
func (s *Service) HasPIN(ctx context.Context, q db.Querier, org, user string) (has bool, err error) {
	err = q.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM mailbox_pins WHERE org_id = $1 AND user_id = $2)`, org, user).Scan(&has)
	return has, err
}

// pin is the stored state of a user's PIN, with the counters of outside callers or of the other ones.
type pin struct {
	salt, digest string
	wrong, locks int
	lockedUntil  db.Time
}

// CheckPIN checks a PIN. The third wrong one in a row locks the mailbox, longer each time: 1 min, 5 min, 30 min, 2 h,
// 24 h. A locked mailbox refuses the correct PIN too. Outside callers are counted and locked out by themselves, so that
// strangers cannot lock a mailbox for its user's telephones. The digest is computed before the transaction, because it
// is slow.
func (s *Service) CheckPIN(ctx context.Context, org, user, given string, outside bool) (PINAttempt, error) {
	var p pin
	err := s.cfg.DB.Read(ctx).QueryRow(ctx, `SELECT salt FROM mailbox_pins WHERE org_id = $1 AND user_id = $2`, org, user).Scan(&p.salt)
	if db.IsNone(err) {
		return PINAttempt{Result: PINNotSet}, nil
	}
	if err != nil {
		return PINAttempt{}, fmt.Errorf("read PIN: %w", err)
	}
	digest, err := s.digest(p.salt, given)
	if err != nil {
		return PINAttempt{}, err
	}
	salt, t := p.salt, PINAttempt{}
	err = s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		if p, err = lockPIN(ctx, tx, org, user, outside); err != nil {
			return err
		}
		right := p.salt == salt && subtle.ConstantTimeCompare([]byte(digest), []byte(p.digest)) == 1
		t = p.evaluate(right, s.cfg.Clock.Now())
		return p.store(ctx, tx, org, user, outside)
	})
	return t, err
}

// lockPIN reads the PIN of a user with the counters of outside callers, or of the other ones. Concurrent attempts wait.
func lockPIN(ctx context.Context, tx db.Querier, org, user string, outside bool) (p pin, err error) {
	text := `UPDATE mailbox_pins SET wrong = wrong WHERE org_id = $1 AND user_id = $2 RETURNING salt, digest, wrong, locks, locked_until`
	if outside {
		text = `UPDATE mailbox_pins SET wrong = wrong WHERE org_id = $1 AND user_id = $2
			RETURNING salt, digest, outside_wrong, outside_locks, outside_locked_until`
	}
	err = tx.QueryRow(ctx, text, org, user).Scan(&p.salt, &p.digest, &p.wrong, &p.locks, &p.lockedUntil)
	return p, err
}

// store writes the counters of outside callers, or of the other ones.
func (p *pin) store(ctx context.Context, tx db.Querier, org, user string, outside bool) error {
	text := `UPDATE mailbox_pins SET wrong = $3, locks = $4, locked_until = $5 WHERE org_id = $1 AND user_id = $2`
	if outside {
		text = `UPDATE mailbox_pins SET outside_wrong = $3, outside_locks = $4, outside_locked_until = $5 WHERE org_id = $1 AND user_id = $2`
	}
	_, err := tx.Exec(ctx, text, org, user, p.wrong, p.locks, p.lockedUntil)
	return err
}

// evaluate returns the outcome of an attempt and updates the counters.
func (p *pin) evaluate(right bool, now time.Time) PINAttempt {
	switch {
	case p.lockedUntil.After(now):
		return PINAttempt{Result: PINLocked, Until: p.lockedUntil.Time}
	case right:
		p.wrong, p.locks, p.lockedUntil = 0, 0, db.Time{}
		return PINAttempt{Result: PINAccepted}
	}
	if p.wrong++; p.wrong < maxPINTries {
		return PINAttempt{Result: PINWrong}
	}
	p.lockedUntil = db.At(now.Add(lockDurations[min(p.locks, len(lockDurations)-1)]))
	p.wrong = 0
	p.locks++
	return PINAttempt{Result: PINLocked, Until: p.lockedUntil.Time, JustLocked: true}
}
