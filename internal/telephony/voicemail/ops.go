package voicemail

import (
	"context"
	"fmt"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/observe"
	"soniq/internal/platform/op"
	"soniq/internal/platform/visibility"
	"soniq/internal/telephony/number"
)

// Operations lists the API operations on messages.
func (s *Service) Operations() []op.Operation {
	return []op.Operation{
		op.New("voicemail.list", "GET /voicemail", access.CallsRead, "List messages", s.List),
		op.New("voicemail.get", "GET /voicemail/{id}", access.CallsRead, "Get one message", s.Show),
		op.NewStream("voicemail.audio", "GET /voicemail/{id}/audio", access.CallsRead, "Get the sound of a message", s.Audio).
			Fails("gone", "concurrency_limit").
			AnswersFile("audio/wav"),
		op.New("voicemail.update", "PATCH /voicemail/{id}", access.CallsWrite, "Say that a message was read, or whose it is",
			s.Update).Fails("gone"),
		op.Delete("voicemail.delete", "DELETE /voicemail/{id}", access.CallsWrite, "Delete a message", s.Delete).Fails("gone"),
	}
}

// ListIn holds the filters of List.
type ListIn struct {
	op.Paging
	op.Span
	MailboxType string   `query:"mailbox_type" enum:"user,queue,flow"`
	MailboxID   string   `query:"mailbox_id" maxLength:"40"`
	Status      []string `query:"status" enum:"new,read,archived,deleted" doc:"All but deleted ones unless given"`
	Phone       string   `query:"phone" maxLength:"40" doc:"Who called"`
	Sort        string   `query:"sort" enum:"-received_at,received_at" default:"-received_at"`
}

// List returns messages, newest first by default.
func (s *Service) List(ctx context.Context, in *ListIn) (*op.Out[op.Page[Voicemail]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	q, org := s.cfg.DB.Read(ctx), access.Org(ctx)
	phone := in.Phone
	if err := number.StoreForms(ctx, q, org, &phone); err != nil {
		return nil, err
	}
	view, err := visibility.From(ctx, q)
	if err != nil {
		return nil, err
	}
	f, err := in.query(view, org, phone)
	if err != nil {
		return nil, err
	}
	found, err := listMessages(ctx, q, f, db.At(time.UnixMicro(after.Int)), after.ID, in.Sort != "received_at", in.Limit+1)
	if err != nil {
		return nil, err
	}
	for i := range found {
		s.setAudioURL(ctx, &found[i], false)
	}
	page := op.Paged(ctx, in.Paging, found, func(v Voicemail) op.Position { return op.Position{Int: v.ReceivedAt.UnixMicro(), ID: v.ID} })
	return op.WithTotal(page, in.Paging, func() (int, error) {
		f, err := in.query(view, org, phone)
		if err != nil {
			return 0, err
		}
		return f.Count(ctx, q)
	})
}

// OneIn holds the id of a message.
type OneIn struct {
	ID string `path:"id" maxLength:"40" example:"vm_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
}

func (s *Service) findMessage(ctx context.Context, q db.Querier, id string) (Voicemail, error) {
	v, err := getMessage(ctx, q, access.Org(ctx), id)
	if db.IsNone(err) {
		return v, op.NotFound("message")
	}
	if err != nil {
		return v, fmt.Errorf("get message: %w", err)
	}
	s.setAudioURL(ctx, &v, false)
	return v, nil
}

// Show returns a message, including a deleted one without its transcript and audio URL.
func (s *Service) Show(ctx context.Context, in *OneIn) (*op.Out[Voicemail], error) {
	v, err := s.findMessage(ctx, s.cfg.DB.Read(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return op.Versioned(v, v.UpdatedAt)
}

// AudioIn holds the input of Audio.
type AudioIn struct {
	OneIn
	Format string `query:"format" enum:"wav" doc:"wav"`
}

// Audio sends the audio, whole or in the byte ranges that the client requests.
func (s *Service) Audio(ctx context.Context, in *AudioIn) (*huma.StreamResponse, error) {
	v, err := s.findMessage(ctx, s.cfg.DB.Read(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	if v.Status == Deleted {
		return nil, op.Fail("gone", "the message was deleted")
	}
	f, _, err := s.cfg.Files.Open(ctx, v.blob)
	if err != nil {
		return nil, fmt.Errorf("open message %s: %w", v.ID, err)
	}
	return op.FileStream(ctx, op.File{Org: v.OrgID, Content: f, Name: v.ID + ".wav", Type: "audio/wav", Changed: v.ReceivedAt.Time})
}

// UpdateIn holds the input of Update.
type UpdateIn struct {
	OneIn
	op.Match
	Body Patch
}

// Patch is a merge patch (RFC 7396) of a message.
type Patch struct {
	Status     op.Change[string] `json:"status,omitzero" doc:"read, new or archived"`
	AssigneeID op.Change[string] `json:"assignee_id,omitzero" doc:"Who looks after it; null: nobody"`
}

// Update sets the status (read, new or archived) and the assignee of a message.
func (s *Service) Update(ctx context.Context, in *UpdateIn) (*op.Out[Voicemail], error) {
	var v Voicemail
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) (err error) {
		if v, err = s.findUndeleted(ctx, tx, in.ID, in.Match); err != nil {
			return err
		}
		before := v.AssigneeID
		wrong, err := s.applyPatch(ctx, tx, &v, in.Body)
		if err != nil {
			return err
		}
		if len(wrong) > 0 {
			return op.Invalid(wrong...)
		}
		v.UpdatedAt = db.At(s.cfg.Clock.Now())
		if err := updateMessage(ctx, tx, v); err != nil {
			return err
		}
		return s.publishUpdate(ctx, tx, v, before)
	})
	if err != nil {
		return nil, err
	}
	return op.Versioned(v, v.UpdatedAt)
}

// findUndeleted returns a message, or an error if it was deleted or does not match the client's version.
func (s *Service) findUndeleted(ctx context.Context, q db.Querier, id string, m op.Match) (Voicemail, error) {
	v, err := s.findMessage(ctx, q, id)
	if err != nil {
		return v, err
	}
	if err := m.Check(v.UpdatedAt); err != nil {
		return v, err
	}
	if v.Status == Deleted {
		return v, op.Fail("gone", "the message was deleted")
	}
	return v, nil
}

func (s *Service) applyPatch(ctx context.Context, q db.Querier, v *Voicemail, p Patch) (wrong []op.Violation, err error) {
	if p.Status.Set {
		switch v.Status = p.Status.V; v.Status {
		case New:
			v.ReadAt = db.Time{}
		case Read, Archived:
			if v.ReadAt.IsZero() {
				v.ReadAt = db.At(s.cfg.Clock.Now())
			}
		default:
			wrong = append(wrong, op.Field("status", "invalid_value", "must be read, new or archived"))
		}
	}
	if !p.AssigneeID.Set {
		return wrong, nil
	}
	v.AssigneeID = db.Null(p.AssigneeID.V).Ptr()
	const text = `SELECT $2 = '' OR EXISTS (SELECT 1 FROM users WHERE org_id = $1 AND id = $2 AND status <> 'removed')`
	var has bool
	if err := q.QueryRow(ctx, text, v.OrgID, p.AssigneeID.V).Scan(&has); err != nil {
		return nil, fmt.Errorf("find user: %w", err)
	}
	if !has {
		wrong = append(wrong, op.Field("assignee_id", "not_found", "no such user"))
	}
	return wrong, nil
}

// DeleteIn holds the input of Delete.
type DeleteIn struct {
	OneIn
	op.Match
}

// Delete deletes the audio and the transcript of a message. Its row stays with the status deleted.
func (s *Service) Delete(ctx context.Context, in *DeleteIn) error {
	return s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		v, err := s.findUndeleted(ctx, tx, in.ID, in.Match)
		if err != nil {
			return err
		}
		return s.deleteMessage(ctx, tx, v)
	})
}

// deleteMessage deletes the audio and the transcript of a message.
func (s *Service) deleteMessage(ctx context.Context, tx db.Querier, v Voicemail) error {
	if err := observe.Each(s.observers.remove, func(o RemoveObserver) error { return o.VoicemailRemoved(ctx, tx, v) }); err != nil {
		return fmt.Errorf("delete message: %w", err)
	}
	v.UpdatedAt = db.At(s.cfg.Clock.Now())
	if err := markDeleted(ctx, tx, v); err != nil {
		return fmt.Errorf("delete message: %w", err)
	}
	v.Status = Deleted
	if err := s.publishUpdate(ctx, tx, v, nil); err != nil {
		return err
	}
	// If the deletion fails, the file stays on disk and is no longer referenced.
	db.OnCommit(tx, func() { _ = s.cfg.Files.Delete(context.WithoutCancel(ctx), v.blob) })
	return nil
}
