package crm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/oauth2"

	"soniq/internal/customer/crm/adapter"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/platform/seal"
)

// OAuth 2.0 authorization code flow (RFC 6749 §4.1) with PKCE (RFC 7636): start of an authorization, its state and
// its verifier.

// authorizationTTL is the time a person has to give consent.
const authorizationTTL = 10 * time.Minute

// Authorization holds the address at which a person gives consent to a connection.
type Authorization struct {
	URL       string  `json:"authorize_url" secret:"true" doc:"To be opened in a browser, by somebody who may agree for the vendor's account; it works once"`
	ExpiresAt db.Time `json:"expires_at"`
}

// Authorize starts a new authorization of a connection. It is used if the first one was not finished, or the vendor
// no longer accepts the grant.
func (s *Service) Authorize(ctx context.Context, in *OneIn) (*op.Out[Authorization], error) {
	var a Authorization
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		all, err := s.allConnections(ctx, tx, access.Org(ctx))
		if err != nil {
			return err
		}
		c, err := findConnection(all, in.ID)
		if err != nil {
			return err
		}
		if !s.requiresConsent(c) {
			return op.State("nobody has to agree to this connection in a browser", c.Provider)
		}
		a, err = s.startAuthorization(ctx, tx, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	return op.OK(a)
}

// vendorConnectionOf reads the settings of a connection to a vendor. It returns false for other providers and for
// invalid settings.
func (s *Service) vendorConnectionOf(c Connection) (adapter.Provider, adapter.VendorConnection, bool) {
	p, ok := adapter.FindProvider(c.Provider)
	if !ok {
		return p, adapter.VendorConnection{}, false
	}
	d, ok := p.Vendor(s.env, c.settings)
	return p, d, ok
}

// requiresConsent reports whether a person must authorize the connection in a browser.
func (s *Service) requiresConsent(c Connection) bool {
	_, d, ok := s.vendorConnectionOf(c)
	return ok && d.RequiresConsent()
}

// setGrantStatus sets the status auth_required if consent is missing or the vendor refuses the grant.
func (s *Service) setGrantStatus(c *Connection) {
	if c.grantState == "yes" || !s.requiresConsent(*c) {
		return
	}
	why := "nobody has agreed to the connection yet: POST /crm/connections/" + c.ID + "/authorize tells where"
	if c.grantState != "" {
		why = "somebody has to agree again: " + c.grantState
	}
	c.Status, c.LastError = "auth_required", &why
}

// initiator identifies the credential that started an authorization.
type initiator struct {
	Home string             `json:"home,omitempty"`
	Kind access.Kind        `json:"kind"`
	Key  string             `json:"key"`
	Name string             `json:"name"`
	User string             `json:"user,omitempty"`
	Env  access.Environment `json:"env"`
}

// startAuthorization stores a pending authorization and returns the address of the page that begins it. It deletes expired
// authorizations of the organisation.
func (s *Service) startAuthorization(ctx context.Context, tx db.Querier, c Connection) (a Authorization, err error) {
	who, _ := access.From(ctx)
	state, verifier := seal.Random(43), oauth2.GenerateVerifier()
	digest := s.cfg.Seal.Digest(state)
	sealed, err := s.cfg.Seal.Seal([]byte(verifier), []byte(c.org+"|crm_authorizations|"+digest+"|verifier"))
	if err != nil {
		return a, fmt.Errorf("seal verifier: %w", err)
	}
	by, err := json.Marshal(initiator{who.HomeID, who.Kind, who.KeyID, who.KeyName, who.UserID, who.Environment})
	if err != nil {
		return a, err
	}
	now := s.cfg.Clock.Now()
	a.ExpiresAt = db.At(now.Add(authorizationTTL))
	if _, err := tx.Exec(ctx, `DELETE FROM crm_authorizations WHERE org_id = $1 AND expires_at < $2`, c.org, db.At(now)); err != nil {
		return a, fmt.Errorf("delete expired authorizations: %w", err)
	}
	const q = `INSERT INTO crm_authorizations (org_id, state, connection_id, verifier, asked_by, expires_at) VALUES ($1, $2, $3, $4, $5, $6)`
	if _, err := tx.Exec(ctx, q, c.org, digest, c.ID, sealed, string(by), a.ExpiresAt); err != nil {
		return a, fmt.Errorf("write authorization: %w", err)
	}
	a.URL = s.cfg.BaseURL + StartPath + "?state=" + state
	return a, nil
}

// pendingAuthorization is an authorization that a browser returned from.
type pendingAuthorization struct {
	org, connection, verifier string
	session                   string // of the browser that began it; "": none has yet
	by                        initiator
	expires                   time.Time
}

// authorizationColumns are the columns that scanAuthorization reads.
const authorizationColumns = `org_id, connection_id, verifier, asked_by, expires_at, session`

// scanAuthorization reads an authorization with the digest of its state.
func (s *Service) scanAuthorization(digest string, row interface{ Scan(...any) error }) (a pendingAuthorization, err error) {
	var sealed []byte
	var by string
	var expires db.Time
	if err := row.Scan(&a.org, &a.connection, &sealed, &by, &expires, &a.session); err != nil {
		return a, err
	}
	plain, err := s.cfg.Seal.Unseal(sealed, []byte(a.org+"|crm_authorizations|"+digest+"|verifier"))
	if err != nil {
		return a, fmt.Errorf("read verifier: %w", err)
	}
	a.verifier, a.expires = string(plain), expires.Time
	return a, json.Unmarshal([]byte(by), &a.by)
}

// findAuthorization returns an authorization, or db.ErrNone.
func (s *Service) findAuthorization(ctx context.Context, state string) (pendingAuthorization, error) {
	digest := s.cfg.Seal.Digest(state)
	// tenant: a browser sends only the state, which determines the organisation
	return s.scanAuthorization(digest, s.cfg.DB.Read(ctx).QueryRow(ctx,
		`SELECT `+authorizationColumns+` FROM crm_authorizations WHERE state = $1`, digest))
}

// takeAuthorization deletes and returns an authorization of a session: its state is valid once. It returns db.ErrNone if there is none. The
// authorization of another session stays.
func (s *Service) takeAuthorization(ctx context.Context, state, session string) (a pendingAuthorization, err error) {
	digest := s.cfg.Seal.Digest(state)
	if a, err = s.findAuthorization(ctx, state); err != nil || a.session != session {
		return a, err
	}
	err = s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		const q = `DELETE FROM crm_authorizations WHERE org_id = $1 AND state = $2 AND session = $3 RETURNING ` + authorizationColumns
		a, err = s.scanAuthorization(digest, tx.QueryRow(ctx, q, a.org, digest, session))
		return err
	})
	return a, err
}

// bindAuthorization stores the session that began an authorization. It returns db.ErrNone if another session was first.
func (s *Service) bindAuthorization(ctx context.Context, a pendingAuthorization, state, session string) error {
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		const q = `UPDATE crm_authorizations SET session = $3 WHERE org_id = $1 AND state = $2 AND session IN ('', $3)`
		r, err := tx.Exec(ctx, q, a.org, s.cfg.Seal.Digest(state), session)
		if err != nil {
			return fmt.Errorf("bind authorization: %w", err)
		}
		if n, err := r.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, db.ErrNone)
		}
		return nil
	})
}
