package prompt

import (
	"context"
	"errors"
	"io"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Import stores a WAV file that was recorded here, such as a greeting recorded by phone, and returns its id. The
// limits are those of uploads. Refusals are of type *op.Error.
func (s *Service) Import(ctx context.Context, org, name, kind string, wav io.Reader) (string, error) {
	if err := checkCount(ctx, s.cfg.DB.Read(ctx), org); err != nil {
		return "", err
	}
	a := Audio{ID: db.NewID("aud"), OrgID: org, Name: name, Kind: kind, Source: "upload", Format: "wav",
		CreatedAt: db.At(s.cfg.Clock.Now())}
	if wrong := a.validate(); len(wrong) > 0 {
		return "", op.Invalid(wrong...)
	}
	if err := s.storeFile(ctx, &a, wav); err != nil {
		return "", err
	}
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		if err := s.reserve(ctx, tx, a); err != nil {
			return err
		}
		return insert(ctx, tx, a)
	})
	if err != nil {
		return "", errors.Join(err, s.cfg.Files.Delete(context.WithoutCancel(ctx), a.blob))
	}
	return a.ID, nil
}
