package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"soniq/internal/platform/db"
)

// ErrNoSecret means that no secret is available for a request: the organisation has no webhook at the target server.
var ErrNoSecret = errors.New("no webhook of the organisation is at that server, whose secret could sign it")

// SignRequest signs a request other than a delivery in the same way as deliveries. It uses the secret of the
// organisation's newest webhook with the same scheme, host and port, because the receiver knows it. A new id takes
// the place of the event id.
func (s *Service) SignRequest(ctx context.Context, org string, r *http.Request, body string) error {
	all, err := listEndpoints(ctx, s.cfg.DB.Read(ctx), endpointFilter(org))
	if err != nil {
		return err
	}
	var newest *endpoint
	for _, e := range all {
		if sameServer(e.URL, r.URL) && (newest == nil || e.ID > newest.ID) {
			newest = e
		}
	}
	if newest == nil {
		return ErrNoSecret
	}
	now := s.cfg.Clock.Now()
	k, err := s.secrets(newest, now)
	if err != nil {
		return fmt.Errorf("sign request: %w", err)
	}
	prefix, err := s.headerPrefix(ctx, org)
	if err != nil {
		return err
	}
	k.sign(r.Header, prefix, db.NewID("req"), body, now)
	return nil
}

// sameServer reports whether an address has the scheme, host and port of another.
func sameServer(address string, of *url.URL) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == of.Scheme && strings.EqualFold(u.Hostname(), of.Hostname()) && port(u) == port(of)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"https": "443", "http": "80"}[u.Scheme]
}
