package voicemail

import (
	"context"
	"fmt"
	"io"

	"soniq/internal/platform/db"
	"soniq/internal/protocol/media/wav"
)

// MessagesForUser returns the messages that voicemail access by phone plays to a user, at most limit: the new ones,
// newest first, then those heard before. They are of the user's mailbox or assigned to the user.
func (s *Service) MessagesForUser(ctx context.Context, org, user string, limit int) ([]Voicemail, error) {
	const text = selectMessages + ` AND (v.mailbox_id = $2 OR v.assignee_id = $2) AND v.status IN ('new', 'read')
		ORDER BY CASE WHEN v.status = 'new' THEN 0 ELSE 1 END, v.received_at DESC, v.id DESC LIMIT $3`
	all, err := queryMessages(ctx, s.cfg.DB.Read(ctx), text, org, user, limit)
	if err != nil {
		return nil, fmt.Errorf("list messages: %w", err)
	}
	return all, nil
}

// Path returns the path of a message's audio on this machine.
func (s *Service) Path(v Voicemail) (string, error) { return s.cfg.Files.Path(v.blob) }

// MarkRead sets a new message to read after it was played.
func (s *Service) MarkRead(ctx context.Context, v Voicemail) error {
	return s.withCurrent(ctx, v, func(ctx context.Context, tx db.Querier, v Voicemail) error {
		if v.Status != New {
			return nil
		}
		v.Status, v.ReadAt, v.UpdatedAt = Read, db.At(s.cfg.Clock.Now()), db.At(s.cfg.Clock.Now())
		if err := updateMessage(ctx, tx, v); err != nil {
			return err
		}
		return s.publishUpdate(ctx, tx, v, nil)
	})
}

// Remove deletes a message on request of a user on the phone.
func (s *Service) Remove(ctx context.Context, v Voicemail) error {
	return s.withCurrent(ctx, v, s.deleteMessage)
}

// withCurrent runs do in a transaction with the current state of a message. It does nothing if the message was
// deleted.
func (s *Service) withCurrent(ctx context.Context, v Voicemail, do func(ctx context.Context, tx db.Querier, v Voicemail) error) error {
	return s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		now, err := getMessage(ctx, tx, v.OrgID, v.ID)
		if err != nil || now.Status == Deleted {
			return err
		}
		return do(ctx, tx, now)
	})
}

// Open opens the audio of a message. It returns db.ErrNone if the message was deleted.
func (s *Service) Open(ctx context.Context, org, id string) (Voicemail, io.ReadSeekCloser, int64, error) {
	v, err := getMessage(ctx, s.cfg.DB.Read(ctx), org, id)
	if err == nil && v.Status == Deleted {
		err = db.ErrNone
	}
	if err != nil {
		return v, nil, 0, err
	}
	f, size, err := s.cfg.Files.Open(ctx, v.blob)
	return v, f, size, err
}

// Get returns a message, including a deleted one.
func (s *Service) Get(ctx context.Context, q db.Querier, org, id string) (Voicemail, error) {
	v, err := getMessage(ctx, q, org, id)
	if err == nil {
		s.setAudioURL(ctx, &v, false)
	}
	return v, err
}

// Silence replaces parts of a message's audio by silence. It can be repeated. It does nothing for a deleted message.
func (s *Service) Silence(ctx context.Context, org, id string, parts []wav.Span) error {
	v, err := getMessage(ctx, s.cfg.DB.Read(ctx), org, id)
	if err != nil || v.Status == Deleted {
		return err
	}
	sum, size, err := wav.Silence(ctx, s.cfg.Files, v.blob, parts)
	if err != nil {
		return fmt.Errorf("remove numbers from message %s: %w", id, err)
	}
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		const q = `UPDATE voicemails SET sha256 = $3, size_bytes = $4, updated_at = $5 WHERE org_id = $1 AND id = $2`
		_, err := tx.Exec(ctx, q, org, id, sum, size, db.At(s.cfg.Clock.Now()))
		return err
	})
}
