package crm

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"soniq/internal/customer/crm/adapter"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
)

// revocation is the request that revokes a token when a connection is deleted (RFC 7009). It is stored as JSON: its
// field names are part of the format.
type revocation struct {
	URL, Token, ClientID, ClientSecret string
	InHeader                           bool
}

type revokeArgs struct {
	Sealed string `json:"sealed"`
}

func revokeAAD(org string) []byte { return []byte(org + "|jobs|" + revokeKind + "|sealed") }

// enqueueRevoke enqueues the revocation of the tokens, if the vendor supports it.
func (s *Service) enqueueRevoke(ctx context.Context, tx db.Querier, c Connection) error {
	if err := s.unsealSettings(&c); err != nil {
		return err
	}
	p, d, ok := s.vendorConnectionOf(c)
	if !ok || !d.RequiresConsent() {
		return nil
	}
	g, err := s.grantOf(ctx, tx, c)
	if db.IsNone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	address, inHeader := d.Revocation(g)
	if address == "" {
		return nil
	}
	client := d.OAuthClient(s.env, p, g)
	plain, err := json.Marshal(revocation{address, cmp.Or(g.Refresh, g.Access), client.ClientID, client.ClientSecret, inHeader})
	if err != nil {
		return err
	}
	sealed, err := s.cfg.Seal.Seal(plain, revokeAAD(c.org))
	if err != nil {
		return fmt.Errorf("seal revocation: %w", err)
	}
	return s.cfg.Jobs.Enqueue(ctx, tx, job.Spec{Org: c.org, Queue: Queue, Lane: "crm|" + c.ID, Kind: revokeKind, MaxAttempts: 8,
		Args: revokeArgs{base64.StdEncoding.EncodeToString(sealed)}})
}

// revoke sends the revocation of a token to the vendor.
func (s *Service) revoke(ctx context.Context, j job.Job) error {
	var args revokeArgs
	var x revocation
	err := j.Bind(&args)
	if err != nil {
		return errors.Join(err, job.ErrDead)
	}
	sealed, err := base64.StdEncoding.DecodeString(args.Sealed)
	if err == nil {
		sealed, err = s.cfg.Seal.Unseal(sealed, revokeAAD(j.Org))
	}
	if err == nil {
		err = json.Unmarshal(sealed, &x)
	}
	if err != nil {
		return errors.Join(err, job.ErrDead)
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return x.send(ctx, s.env.Lookups)
}

func (x revocation) send(ctx context.Context, client *http.Client) error {
	form := url.Values{"token": {x.Token}, "token_type_hint": {"refresh_token"}}
	if !x.InHeader {
		form.Set("client_id", x.ClientID)
		form.Set("client_secret", x.ClientSecret)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, x.URL, strings.NewReader(form.Encode()))
	if err != nil {
		return errors.Join(err, job.ErrDead)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if x.InHeader {
		r.SetBasicAuth(url.QueryEscape(x.ClientID), url.QueryEscape(x.ClientSecret))
	}
	answer, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("revoke tokens: %w", adapter.WithoutURL(ctx, err))
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests {
		return fmt.Errorf("revoke tokens: the system answered %d", answer.StatusCode)
	}
	return nil // a vendor that does not know the token has nothing to revoke
}
