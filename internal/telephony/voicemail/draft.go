package voicemail

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// A Draft is a message that is being left. It is written down before the first word, so that a crash loses no more than a moment.
type Draft struct {
	Org     string
	ID      string // db.NewID("vm")
	CallID  string
	Mailbox string // the id of a user, a queue or a flow
	Begun   time.Time
}

// Blob is where the sound of the message is kept.
func (d Draft) Blob() string { return BlobName(d.Org, d.ID, d.Begun) }

// A Sound is a finished file of a message.
type Sound struct {
	Duration time.Duration
	Size     int64
	SHA256   string
}

// Begin writes down that a message is being left.
func (s *Service) Begin(ctx context.Context, d Draft) error {
	const text = `INSERT INTO voicemail_drafts (org_id, id, call_id, mailbox_id, node, begun_at, blob) VALUES ($1, $2, $3, $4, $5, $6, $7)`
	return s.DB.Tx(ctx, func(tx db.Querier) error {
		if _, err := tx.Exec(ctx, text, d.Org, d.ID, d.CallID, d.Mailbox, s.Node, db.At(d.Begun), d.Blob()); err != nil {
			return fmt.Errorf("begin message: %w", err)
		}
		return nil
	})
}

// Keep makes a message of a draft: it is received, and the record of the call names it, in one transaction.
func (s *Service) Keep(ctx context.Context, d Draft, x Sound) error {
	return s.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		m := Message{Org: d.Org, ID: d.ID, CallID: d.CallID, Mailbox: d.Mailbox, ReceivedAt: d.Begun, Blob: d.Blob(), Duration: x.Duration,
			Size: x.Size, SHA256: x.SHA256, Words: s.Words}
		var contact db.JSON[*event.Contact]
		const caller = `SELECT from_number, contact, sandbox FROM calls WHERE org_id = $1 AND id = $2`
		if err := tx.QueryRow(ctx, caller, d.Org, d.CallID).Scan(&m.From, &contact, &m.Sandbox); err != nil {
			return fmt.Errorf("find caller: %w", err)
		}
		m.Contact = contact.V
		if _, err := s.Receive(ctx, tx, m); err != nil {
			return err
		}
		if s.OnKeep != nil {
			if err := s.OnKeep(ctx, tx, d.Org, d.CallID, d.ID); err != nil {
				return err
			}
		}
		return forget(ctx, tx, d)
	})
}

// Drop forgets a draft that said nothing, and its file.
func (s *Service) Drop(ctx context.Context, d Draft) error {
	if err := s.Files.Delete(ctx, d.Blob()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.DB.Tx(ctx, func(tx db.Querier) error { return forget(ctx, tx, d) })
}

func forget(ctx context.Context, tx db.Querier, d Draft) error {
	_, err := tx.Exec(ctx, `DELETE FROM voicemail_drafts WHERE org_id = $1 AND id = $2`, d.Org, d.ID)
	return err
}

// shortest is how long what a crash left must be to be a message.
const shortest = 2 * time.Second

// Recover makes messages of what callers were saying as this node crashed, and returns how many. Finish completes the file with that
// name, or finds it complete; its error says that there is none.
func (s *Service) Recover(ctx context.Context, finish func(path string) (Sound, error)) (kept int, err error) {
	all, err := s.drafts(ctx)
	if err != nil {
		return 0, err
	}
	for _, d := range all {
		path, err := s.Files.Path(d.Blob())
		if err != nil {
			return kept, err
		}
		x, failed := finish(path)
		if failed != nil || x.Duration < shortest {
			if err := s.Drop(ctx, d); err != nil {
				return kept, fmt.Errorf("drop message %s: %w", d.ID, err)
			}
			continue
		}
		if err := s.Keep(ctx, d, x); err != nil {
			return kept, fmt.Errorf("keep message %s: %w", d.ID, err)
		}
		kept++
	}
	return kept, nil
}

// drafts are those of this node.
func (s *Service) drafts(ctx context.Context) ([]Draft, error) {
	// tenant: a node looks after the messages that were being left at it, whoever they are for
	const text = `SELECT org_id, id, call_id, mailbox_id, begun_at FROM voicemail_drafts WHERE node = $1`
	rows, err := s.DB.Read(ctx).Query(ctx, text, s.Node)
	if err != nil {
		return nil, fmt.Errorf("find messages being left: %w", err)
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
