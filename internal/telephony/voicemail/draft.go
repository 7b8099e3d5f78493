package voicemail

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/observe"
)

// Draft is a message that is being recorded. Its row is inserted before the recording starts, so that Recover finds
// the file after a crash.
type Draft struct {
	Org     string
	ID      string // db.NewID("vm")
	CallID  string
	Mailbox string // id of a user, a queue or a flow
	Begun   time.Time
}

// Blob returns the name of the message's audio in the blob store.
func (d Draft) Blob() string { return BlobName(d.Org, d.ID, d.Begun) }

// AudioFile describes the finished file of a message.
type AudioFile struct {
	Duration time.Duration
	Size     int64
	SHA256   string
}

// BeginDraft inserts a draft.
func (s *Service) BeginDraft(ctx context.Context, d Draft) error {
	const text = `INSERT INTO voicemail_drafts (org_id, id, call_id, mailbox_id, node, begun_at, blob) VALUES ($1, $2, $3, $4, $5, $6, $7)`
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		if _, err := tx.Exec(ctx, text, d.Org, d.ID, d.CallID, d.Mailbox, s.cfg.Node, db.At(d.Begun), d.Blob()); err != nil {
			return fmt.Errorf("insert voicemail draft: %w", err)
		}
		return nil
	})
}

// SaveDraft turns a draft into a message. In one transaction the message is received, the call's record gets its id,
// and the draft is deleted.
func (s *Service) SaveDraft(ctx context.Context, d Draft, x AudioFile) error {
	return s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		m := Message{Org: d.Org, ID: d.ID, CallID: d.CallID, Mailbox: d.Mailbox, ReceivedAt: d.Begun, Blob: d.Blob(), Duration: x.Duration,
			Size: x.Size, SHA256: x.SHA256, TranscriptStatus: s.cfg.TranscriptStatus}
		var contact db.JSON[*event.Contact]
		const caller = `SELECT from_number, contact, sandbox FROM calls WHERE org_id = $1 AND id = $2`
		if err := tx.QueryRow(ctx, caller, d.Org, d.CallID).Scan(&m.From, &contact, &m.Sandbox); err != nil {
			return fmt.Errorf("find caller: %w", err)
		}
		m.Contact = contact.V
		if _, err := s.Receive(ctx, tx, m); err != nil {
			return err
		}
		if err := observe.Each(s.observers.save, func(o SaveObserver) error {
			return o.VoicemailSaved(ctx, tx, d.Org, d.CallID,
				d.ID)
		}); err != nil {
			return err
		}
		return deleteDraft(ctx, tx, d)
	})
}

// DiscardDraft deletes a draft without a message, and its file.
func (s *Service) DiscardDraft(ctx context.Context, d Draft) error {
	if err := s.cfg.Files.Delete(ctx, d.Blob()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error { return deleteDraft(ctx, tx, d) })
}

func deleteDraft(ctx context.Context, tx db.Querier, d Draft) error {
	_, err := tx.Exec(ctx, `DELETE FROM voicemail_drafts WHERE org_id = $1 AND id = $2`, d.Org, d.ID)
	return err
}

// minRecovered is the minimum duration of a recovered message. Shorter ones are discarded.
const minRecovered = 2 * time.Second

// Recover finds the drafts that this node left at a crash. FinishDrafts turns them into messages.
func (s *Service) Recover(ctx context.Context) error {
	all, err := s.drafts(ctx)
	for _, d := range all {
		s.FinishLater(d)
	}
	return err
}

// FinishLater takes a draft whose file or message could not be written, for example because the disk is full.
// FinishDrafts turns the recorded part into a message. After a restart Recover finds the draft.
func (s *Service) FinishLater(d Draft) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unfinished = append(s.unfinished, d)
}

// takeUnfinished returns and clears the drafts of FinishLater.
func (s *Service) takeUnfinished() []Draft {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.unfinished
	s.unfinished = nil
	return all
}

// FinishDrafts turns the drafts of Recover and FinishLater into messages, and returns how many. Drafts with an error
// remain for the next call. finish completes the file at path, or finds it complete; without audio it returns a duration
// of 0.
func (s *Service) FinishDrafts(ctx context.Context, finish func(path string) (AudioFile, error)) (kept int, err error) {
	for _, d := range s.takeUnfinished() {
		stored, failed := s.finishDraft(ctx, d, finish)
		if failed != nil {
			s.FinishLater(d)
			err = errors.Join(err, fmt.Errorf("voicemail draft %s: %w", d.ID, failed))
		}
		if stored {
			kept++
		}
	}
	return kept, err
}

// finishDraft turns a draft into a message. It discards a draft that has hardly any audio.
func (s *Service) finishDraft(ctx context.Context, d Draft, finish func(path string) (AudioFile, error)) (kept bool, err error) {
	path, err := s.cfg.Files.Path(d.Blob())
	if err != nil {
		return false, err
	}
	x, err := finish(path)
	if err != nil {
		return false, err
	}
	if x.Duration < minRecovered {
		return false, s.DiscardDraft(ctx, d)
	}
	return true, s.SaveDraft(ctx, d, x)
}

// Adopt makes the drafts of another node those of this one, which has their files. Recover then finds them.
func (s *Service) Adopt(ctx context.Context, node string) error {
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		// tenant: everything that a node held
		if _, err := tx.Exec(ctx, `UPDATE voicemail_drafts SET node = $1 WHERE node = $2`, s.cfg.Node, node); err != nil {
			return fmt.Errorf("adopt voicemail drafts of node %s: %w", node, err)
		}
		return nil
	})
}

// drafts returns the drafts of this node.
func (s *Service) drafts(ctx context.Context) ([]Draft, error) {
	// tenant: a node recovers its own drafts, of all organisations
	const text = `SELECT org_id, id, call_id, mailbox_id, begun_at FROM voicemail_drafts WHERE node = $1`
	rows, err := s.cfg.DB.Read(ctx).Query(ctx, text, s.cfg.Node)
	if err != nil {
		return nil, fmt.Errorf("list voicemail drafts: %w", err)
	}
	defer rows.Close()
	var all []Draft
	for rows.Next() {
		var d Draft
		var begun db.Time
		if err := rows.Scan(&d.Org, &d.ID, &d.CallID, &d.Mailbox, &begun); err != nil {
			return nil, err
		}
		d.Begun = begun.Time
		all = append(all, d)
	}
	return all, rows.Err()
}
