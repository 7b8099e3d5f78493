package webhook

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"soniq/internal/platform/db"
)

// Organizations returns the prefix that an organisation chose for our own headers; "" if it chose none.
type Organizations interface {
	WebhookHeaderPrefix(ctx context.Context, org string) (string, error)
}

// headerPrefix returns the prefix of our own headers to an organisation's endpoints: its own, or else that of the
// installation.
func (s *Service) headerPrefix(ctx context.Context, org string) (string, error) {
	own, err := s.cfg.Organizations.WebhookHeaderPrefix(ctx, org)
	if err != nil && !db.IsNone(err) {
		return "", fmt.Errorf("find webhook header prefix: %w", err)
	}
	return cmp.Or(own, s.cfg.Prefix), nil
}

// hasPrefix reports whether a header is one of our own.
func hasPrefix(name, prefix string) bool { return strings.HasPrefix(strings.ToLower(name), prefix+"-") }
