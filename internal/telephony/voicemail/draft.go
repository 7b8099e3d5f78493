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

// Recover turns the drafts that this node left at a crash into messages, and returns how many. finish completes the
// file at path, or finds it complete. Its error means that there is no file.
func (s *Service) Recover(ctx context.Context, finish func(path string) (AudioFile, error)) (kept int, err error) {
	all, err := s.drafts(ctx)
	if err != nil {
		return 0, err
	}
	for _, d := range all {
		path, err := s.cfg.Files.Path(d.Blob())
		if err != nil {
			return kept, err
		}
		x, failed := finish(path)
		if failed != nil || x.Duration < minRecovered {
			if err := s.DiscardDraft(ctx, d); err != nil {
				return kept, fmt.Errorf("discard voicemail draft %s: %w", d.ID, err)
			}
			continue
		}
		if err := s.SaveDraft(ctx, d, x); err != nil {
			return kept, fmt.Errorf("save voicemail draft %s: %w", d.ID, err)
		}
		kept++
	}
	return kept, nil
}

// Adopt makes the drafts of another node those of this one, which has their files. Recover then saves them.
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
