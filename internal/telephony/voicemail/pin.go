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

// A Door is whether somebody who gave a PIN may hear a mailbox.
type Door int

// What giving a PIN comes to.
const (
	Opened Door = iota
	Wrong       // not the PIN
	Locked      // too many wrong ones: nothing is tried until Until
	NoPIN       // none is set: only the user's own telephones get in
)

// A Try is the outcome of giving a PIN.
type Try struct {
	Door  Door
	Until time.Time // of Locked
	Shut  bool      // this very try locked the mailbox
}

// pinTries is how many wrong PINs lock a mailbox.
const pinTries = 3

// locks are how long a mailbox is locked the first time, the second and so on; a right PIN begins anew.
var locks = []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 24 * time.Hour}

// pinRounds makes trying all PINs slow even for who has the database and the master key.
const pinRounds = 50_000

// SetPIN sets a user's PIN, or removes it with "". Only a digest is kept. A lock ends.
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
	const text = `INSERT INTO mailbox_pins (org_id, user_id, salt, digest, wrong, locks, locked_until, updated_at) VALUES ($1, $2, $3, $4, 0, 0, NULL, $5)
		ON CONFLICT (org_id, user_id) DO UPDATE SET salt = $3, digest = $4, wrong = 0, locks = 0, locked_until = NULL, updated_at = $5`
	_, err = tx.Exec(ctx, text, org, user, salt, digest, db.At(s.Now()))
	return err
}

func (s *Service) digest(salt, pin string) (string, error) {
	b, err := pbkdf2.Key(sha256.New, s.Digest(pin), []byte(salt), pinRounds, 32)
	return hex.EncodeToString(b), err
}

// HasPIN reports whether a user has set a PIN.
func (s *Service) HasPIN(ctx context.Context, q db.Querier, org, user string) (has bool, err error) {
	err = q.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM mailbox_pins WHERE org_id = $1 AND user_id = $2)`, org, user).Scan(&has)
	return has, err
}

// pin is what is kept of a user's PIN.
type pin struct {
	salt, digest string
	wrong, locks int
	lockedUntil  db.Time
}

// TryPIN tries a PIN. The third wrong one in a row locks the mailbox, longer each time: a minute, five, half an hour, two hours, a day.
// A right one opens no locked mailbox.
func (s *Service) TryPIN(ctx context.Context, org, user, given string) (Try, error) {
	var p pin
	err := s.DB.Read(ctx).QueryRow(ctx, `SELECT salt FROM mailbox_pins WHERE org_id = $1 AND user_id = $2`, org, user).Scan(&p.salt)
	if db.IsNone(err) {
		return Try{Door: NoPIN}, nil
	}
	if err != nil {
		return Try{}, fmt.Errorf("read PIN: %w", err)
	}
	digest, err := s.digest(p.salt, given)
	if err != nil {
		return Try{}, err
	}
	salt, t := p.salt, Try{}
	err = s.DB.Tx(ctx, func(tx db.Querier) error {
		const lock = `UPDATE mailbox_pins SET wrong = wrong WHERE org_id = $1 AND user_id = $2 RETURNING salt, digest, wrong, locks, locked_until`
		if err := tx.QueryRow(ctx, lock, org, user).Scan(&p.salt, &p.digest, &p.wrong, &p.locks, &p.lockedUntil); err != nil {
			return err
		}
		right := p.salt == salt && subtle.ConstantTimeCompare([]byte(digest), []byte(p.digest)) == 1
		t = p.judge(right, s.Now())
		const text = `UPDATE mailbox_pins SET wrong = $3, locks = $4, locked_until = $5 WHERE org_id = $1 AND user_id = $2`
		_, err := tx.Exec(ctx, text, org, user, p.wrong, p.locks, p.lockedUntil)
		return err
	})
	return t, err
}

// judge says what a try comes to, and counts it.
func (p *pin) judge(right bool, now time.Time) Try {
	switch {
	case p.lockedUntil.After(now):
		return Try{Door: Locked, Until: p.lockedUntil.Time}
	case right:
		p.wrong, p.locks, p.lockedUntil = 0, 0, db.Time{}
		return Try{Door: Opened}
	}
	if p.wrong++; p.wrong < pinTries {
		return Try{Door: Wrong}
	}
	p.lockedUntil = db.At(now.Add(locks[min(p.locks, len(locks)-1)]))
	p.wrong = 0
	p.locks++
	return Try{Door: Locked, Until: p.lockedUntil.Time, Shut: true}
}
