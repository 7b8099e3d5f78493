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

// ErrNoSecret says that nothing can sign a request: the organisation has no webhook at the server it is for.
var ErrNoSecret = errors.New("no webhook of the organisation is at that server, whose secret could sign it")

// Sign signs a request that is no delivery, as deliveries are: with the secret of the organisation's newest webhook at the same scheme,
// host and port, which its receiver checks deliveries with. A new id stands for that of an event.
func (s *Service) Sign(ctx context.Context, org string, r *http.Request, body string) error {
	all, err := listEndpoints(ctx, s.DB.Read(ctx), whereOrg(org))
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
	now := s.Now()
	k, err := s.secrets(newest, now)
	if err != nil {
		return fmt.Errorf("sign request: %w", err)
	}
	k.sign(r.Header, s.Prefix, db.NewID("req"), body, now)
	return nil
}

// sameServer reports whether an address is at the server of another.
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
