package voicemail

import (
	"context"
	"fmt"
	"io"

	"soniq/internal/platform/db"
)

// Mine are the messages a user is to hear by telephone: the new ones, newest first, and then those heard before; at most limit.
func (s *Service) Mine(ctx context.Context, org, user string, limit int) ([]Voicemail, error) {
	const text = selection + ` AND (v.mailbox_id = $2 OR v.assignee_id = $2) AND v.status IN ('new', 'read')
		ORDER BY CASE WHEN v.status = 'new' THEN 0 ELSE 1 END, v.received_at DESC, v.id DESC LIMIT $3`
	all, err := read(ctx, s.DB.Read(ctx), text, org, user, limit)
	if err != nil {
		return nil, fmt.Errorf("list messages: %w", err)
	}
	return all, nil
}

// Path is where the sound of a message lies on this machine.
func (s *Service) Path(v Voicemail) (string, error) { return s.Files.Path(v.blob) }

// Played notes that a user heard a message: a new one is read.
func (s *Service) Played(ctx context.Context, v Voicemail) error {
	return s.rewrite(ctx, v, func(ctx context.Context, tx db.Querier, v Voicemail) error {
		if v.Status != New {
			return nil
		}
		v.Status, v.ReadAt, v.UpdatedAt = Read, db.At(s.Now()), db.At(s.Now())
		s.changed(tx, v, nil)
		return update(ctx, tx, v)
	})
}

// Remove deletes a message, as its user does by telephone.
func (s *Service) Remove(ctx context.Context, v Voicemail) error { return s.rewrite(ctx, v, s.remove) }

// rewrite does something with a message as it is now; a deleted one is left alone.
func (s *Service) rewrite(ctx context.Context, v Voicemail, do func(ctx context.Context, tx db.Querier, v Voicemail) error) error {
	return s.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		now, err := get(ctx, tx, v.OrgID, v.ID)
		if err != nil || now.Status == Deleted {
			return err
		}
		return do(ctx, tx, now)
	})
}

// Open opens the sound of a message; a deleted one is db.ErrNone.
func (s *Service) Open(ctx context.Context, org, id string) (Voicemail, io.ReadSeekCloser, int64, error) {
	v, err := get(ctx, s.DB.Read(ctx), org, id)
	if err == nil && v.Status == Deleted {
		err = db.ErrNone
	}
	if err != nil {
		return v, nil, 0, err
	}
	f, size, err := s.Files.Open(ctx, v.blob)
	return v, f, size, err
}

// Get returns a message, a deleted one too.
func (s *Service) Get(ctx context.Context, q db.Querier, org, id string) (Voicemail, error) {
	v, err := get(ctx, q, org, id)
	if err == nil {
		s.address(ctx, &v, false)
	}
	return v, err
}
