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
