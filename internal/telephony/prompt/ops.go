package prompt

import (
	"context"
	"fmt"
	"path"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/limit"
	"soniq/internal/platform/op"
)

// Operations returns the API operations on audio files.
func (s *Service) Operations() []op.Operation {
	return []op.Operation{
		op.New("audio.list", "GET /audio", access.FlowsAdmin, "List prompts and music", s.List),
		op.New("audio.create", "POST /audio", access.FlowsAdmin, "Upload a sound, or have a text spoken",
			s.Create).Status(201).WithSideEffects().
			Upload(limit.AudioFile.Default+maxForm).Takes("multipart/form-data", Upload{}).Takes("application/json", Fresh{}),
		op.New("audio.get", "GET /audio/{id}", access.FlowsAdmin, "Get one sound", s.Show),
		op.NewStream("audio.content", "GET /audio/{id}/content", access.FlowsAdmin, "Fetch the sound itself", s.Content).
			Fails("concurrency_limit").AnswersFile("audio/wav", "audio/mpeg", "audio/ogg"),
		op.Delete("audio.delete", "DELETE /audio/{id}", access.FlowsAdmin, "Remove a sound nothing plays", s.Delete),
	}
}

// ListIn has the filters of a list of audio files.
type ListIn struct {
	op.Paging
	Kind []string `query:"kind" enum:"greeting,prompt,music,voicemail_greeting"`
	Q    string   `query:"q" maxLength:"120" doc:"Part of a name"`
}

// List returns audio files in the order of their creation.
func (s *Service) List(ctx context.Context, in *ListIn) (*op.Out[op.Page[Audio]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	q, org := s.cfg.DB.Read(ctx), access.Org(ctx)
	rows, err := list(ctx, q, listFilter(org, in.Kind, in.Q), after.ID, in.Limit)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if err := s.withURLAndUses(ctx, q, &rows[i]); err != nil {
			return nil, err
		}
	}
	page := op.Paged(ctx, in.Paging, rows, func(a Audio) op.Position { return op.Position{ID: a.ID} })
	return op.WithTotal(page, in.Paging, func() (int, error) { return listFilter(org, in.Kind, in.Q).Count(ctx, q) })
}

// OneIn names an audio file.
type OneIn struct {
	ID string `path:"id" example:"aud_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
}

func (s *Service) load(ctx context.Context, q db.Querier, id string) (Audio, error) {
	a, err := get(ctx, q, access.Org(ctx), id)
	if db.IsNone(err) {
		return a, op.NotFound("audio")
	}
	if err != nil {
		return a, fmt.Errorf("get audio: %w", err)
	}
	return a, s.withURLAndUses(ctx, q, &a)
}

// Show returns the record of an audio file.
func (s *Service) Show(ctx context.Context, in *OneIn) (*op.Out[Audio], error) {
	a, err := s.load(ctx, s.cfg.DB.Read(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return op.OK(a)
}

// Content sends the audio file, whole or the requested ranges.
func (s *Service) Content(ctx context.Context, in *OneIn) (*huma.StreamResponse, error) {
	a, err := s.load(ctx, s.cfg.DB.Read(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	f, _, err := s.cfg.Files.Open(ctx, a.blob)
	if err != nil {
		return nil, fmt.Errorf("open audio %s: %w", a.ID, err)
	}
	return op.FileStream(ctx, op.File{Org: a.OrgID, Content: f, Name: path.Base(a.blob),
		Type: mediaTypes[a.Format], Changed: a.CreatedAt.Time})
}

var mediaTypes = map[string]string{"wav": "audio/wav", "mp3": "audio/mpeg", "ogg": "audio/ogg"}

// Delete removes an audio file that is not in use.
func (s *Service) Delete(ctx context.Context, in *OneIn) error {
	return s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		a, err := s.load(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		if len(a.UsedBy) > 0 {
			ids := make([]string, len(a.UsedBy))
			for i, u := range a.UsedBy {
				ids[i] = u.ID
			}
			return op.InUse("the sound is still played", ids...)
		}
		if err := remove(ctx, tx, a.OrgID, a.ID); err != nil {
			return fmt.Errorf("remove audio: %w", err)
		}
		// A file whose removal fails stays on the disk: nothing removes it later.
		db.OnCommit(tx, func() { _ = s.cfg.Files.Delete(context.WithoutCancel(ctx), a.blob) })
		return nil
	})
}
