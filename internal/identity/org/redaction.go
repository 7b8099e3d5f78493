package org

import (
	"context"
	"fmt"

	"soniq/internal/platform/redact"
)

// Redaction returns the policy of an organisation. It implements redact.Policies.
func (s *Service) Redaction(ctx context.Context, org string) (redact.Policy, error) {
	o, err := s.GetShared(ctx, org)
	if err != nil {
		return redact.Policy{}, fmt.Errorf("read redaction of organisation: %w", err)
	}
	return o.Settings.Redaction.policy().In(o.Language), nil
}

// UnredactableAudio is an organisation that removes numbers from recordings, on a node that recognises no speech in its language. All its
// recordings fail.
type UnredactableAudio struct{ Org, Name, Reason string }

// UnredactableAudio returns the organisations that remove numbers from recordings and whose language is not recognised. check returns the
// reason why speech in a language is not recognised, or "".
func (s *Service) UnredactableAudio(ctx context.Context, check func(language string) string) (all []UnredactableAudio, err error) {
	list, err := s.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list organisations: %w", err)
	}
	for _, o := range list {
		if !o.Redaction.policy().Audio {
			continue
		}
		if why := check(o.Language); why != "" {
			all = append(all, UnredactableAudio{o.ID, o.Name, why})
		}
	}
	return all, nil
}
