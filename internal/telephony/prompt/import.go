package prompt

import (
	"context"
	"errors"
	"fmt"
	"io"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Import adds a WAV file that was made by this server, such as a greeting recorded by telephone, and returns its ID.
// The limits are those of uploads. A violation is an *op.Error.
func (s *Service) Import(ctx context.Context, org, name, kind string, wav io.Reader) (string, error) {
	n, err := count(ctx, s.DB.Read(ctx), org)
	if err != nil {
		return "", fmt.Errorf("count audio: %w", err)
	}
	if n >= maxSounds {
		return "", op.Fail("plan_limit", fmt.Sprintf("an organisation may keep %d sounds; remove some", maxSounds))
	}
	a := Audio{ID: db.NewID("aud"), OrgID: org, Name: name, Kind: kind, Source: "upload", Format: "wav", CreatedAt: db.At(s.Now())}
	if wrong := a.check(); len(wrong) > 0 {
		return "", op.Invalid(wrong...)
	}
	if err := s.keep(ctx, &a, wav); err != nil {
		return "", err
	}
	err = s.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		if err := s.admit(ctx, tx, a); err != nil {
			return err
		}
		return insert(ctx, tx, a)
	})
	if err != nil {
		return "", errors.Join(err, s.Files.Delete(context.WithoutCancel(ctx), a.blob))
	}
	return a.ID, nil
}
