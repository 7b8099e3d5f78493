package device

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"soniq/internal/identity/user"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/platform/seal"
)

// ICEServer is a STUN or TURN server in the form of WebRTC's RTCIceServer.
type ICEServer struct {
	URLs       []string `json:"urls" nullable:"false"`
	Username   string   `json:"username,omitempty"`
	Credential string   `json:"credential,omitempty" secret:"true"`
}

// BrowserToken authorises a web page to connect as a phone of one user.
type BrowserToken struct {
	Token      string      `json:"token" secret:"true" doc:"Connects by WebSocket once, within ten minutes; what is connected stays so"`
	ExpiresAt  db.Time     `json:"expires_at"`
	WSURL      string      `json:"ws_url" secret:"true" doc:"SIP over WebSocket (RFC 7118), with the token in it; works once. Or connect without the query, and offer token.<token> as a second WebSocket subprotocol" example:"wss://voice.example.com/ws/sip?token=wt_…"`
	ICEServers []ICEServer `json:"ice_servers" nullable:"false"`
	Username   string      `json:"username" doc:"The SIP user to register, without a password"`
	Domain     string      `json:"domain"`
	DeviceID   string      `json:"device_id"`
}

const (
	tokenLife          = 10 * time.Minute
	tokenLength        = 40 // base62 characters, 238 bits
	maxBrowserDevices  = 20 // per user
	defaultBrowserName = "Browser"
)

// BrowserIn holds the input of CreateToken.
type BrowserIn struct {
	ID   string `path:"id" example:"usr_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Body BrowserBody
}

// BrowserBody names the phone.
type BrowserBody struct {
	DeviceName string `json:"device_name,omitempty" maxLength:"120" doc:"A telephone of this name is used again, or made; Browser unless given"`
}

// CreateToken creates a token for a web page. A credential of the user needs no scope.
func (s *Service) CreateToken(ctx context.Context, in *BrowserIn) (*op.Out[BrowserToken], error) {
	var out BrowserToken
	err := s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		u, err := s.browserUser(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		d, err := s.browserDevice(ctx, tx, u, orDefault(strings.TrimSpace(in.Body.DeviceName), defaultBrowserName))
		if err != nil {
			return err
		}
		if err := noteSession(ctx, tx, d); err != nil {
			return fmt.Errorf("store session of browser: %w", err)
		}
		now := s.now()
		out = BrowserToken{Token: "wt_" + seal.Random(tokenLength), ExpiresAt: db.At(now.Add(tokenLife)), ICEServers: []ICEServer{},
			Username: d.SIP.Username, Domain: s.domain, DeviceID: d.ID}
		out.WSURL = s.config.WebSocket + "?token=" + out.Token
		out.ICEServers = append(out.ICEServers, s.config.ICEServers.WebRTCServers(u.ID)...)
		return insertToken(ctx, tx, d, s.sealer.Digest(out.Token), db.At(now), out.ExpiresAt)
	})
	if err != nil {
		return nil, err
	}
	return op.OK(out)
}

// browserUser returns the user, or an error if the credential may not act for the user.
func (s *Service) browserUser(ctx context.Context, tx db.Querier, id string) (user.User, error) {
	u, err := s.users.Get(ctx, tx, access.Org(ctx), id)
	if db.IsNone(err) {
		return u, op.NotFound("user")
	}
	if err != nil {
		return u, fmt.Errorf("find user: %w", err)
	}
	p, _ := access.From(ctx)
	if p.UserID != id && !slices.Contains(p.Scopes, access.UsersAdmin) {
		return u, &op.Error{Code: "insufficient_scope", Detail: "for another user than the credential's own this needs users:admin",
			Header: http.Header{"Www-Authenticate": {`Bearer error="insufficient_scope", scope="users:admin"`}},
			Extra:  map[string]any{"required_scopes": []access.Scope{access.UsersAdmin}}}
	}
	if u.Status == user.Suspended {
		return u, op.State("the user is suspended", user.Suspended)
	}
	return u, nil
}

// browserDevice returns the user's browser phone with the name, and creates it if there is none.
func (s *Service) browserDevice(ctx context.Context, tx db.Querier, u user.User, name string) (Device, error) {
	all, err := listDevices(ctx, tx, u.OrgID, filter{users: []string{u.ID}, kinds: []string{"webrtc"}, active: true,
		limit: maxBrowserDevices})
	if err != nil {
		return Device{}, err
	}
	if i := slices.IndexFunc(all, func(d Device) bool { return d.Name == name }); i >= 0 {
		return all[i], nil
	}
	if len(all) >= maxBrowserDevices {
		return Device{}, op.Invalid(op.Field("device_name", "too_many", "a user has 20 telephones in pages at most; name one of them"))
	}
	d, err := s.Add(ctx, tx, Device{OrgID: u.OrgID, UserID: u.ID, Name: name, Kind: "webrtc", SRTP: "required"})
	return d, err
}

// TokenLogin is what a token authorises a connection for: requests of an account, until the account has a later generation.
type TokenLogin struct {
	Username   string
	Generation int64
}

// UseToken returns the login of a token, and ends the token: URLs are seen by proxies and kept in logs, so a token in one is worth
// nothing afterwards. ok is false if the token is unknown, was used or has expired.
func (s *Service) UseToken(ctx context.Context, token string) (l TokenLogin, ok bool, err error) {
	digest := s.sealer.Digest(token)
	err = s.db.Tx(ctx, func(tx db.Querier) error {
		if l, err = loginByToken(ctx, tx, digest, db.At(s.now())); err != nil {
			return err
		}
		ok, err = deleteToken(ctx, tx, digest)
		return err
	})
	if db.IsNone(err) {
		return TokenLogin{}, false, nil
	}
	return l, ok && err == nil, err
}

// deleteToken deletes a token. ok is false if another connection deleted it before.
func deleteToken(ctx context.Context, q db.Querier, digest string) (ok bool, err error) {
	// tenant: the organisation follows from the token
	r, err := q.Exec(ctx, `DELETE FROM browser_tokens WHERE digest = $1`, digest)
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n == 1, err
}

func insertToken(ctx context.Context, q db.Querier, d Device, digest string, now, until db.Time) error {
	const text = `INSERT INTO browser_tokens (org_id, id, device_id, digest, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6)`
	_, err := q.Exec(ctx, text, d.OrgID, db.NewID("wt"), d.ID, digest, now, until)
	return err
}

// tokenGeneration returns the generation of the tokens that a telephone gets now.
func tokenGeneration(ctx context.Context, q db.Querier, d Device) (n int64, err error) {
	err = q.QueryRow(ctx, `SELECT token_generation FROM devices WHERE org_id = $1 AND id = $2`, d.OrgID, d.ID).Scan(&n)
	return n, err
}

func loginByToken(ctx context.Context, q db.Querier, digest string, now db.Time) (l TokenLogin, err error) {
	// tenant: the organisation follows from the token
	const text = `SELECT d.username, d.token_generation FROM browser_tokens t JOIN devices d ON d.org_id = t.org_id AND d.id = t.device_id
		WHERE t.digest = $1 AND t.expires_at > $2 AND d.status = 'active'`
	err = q.QueryRow(ctx, text, digest, now).Scan(&l.Username, &l.Generation)
	return l, err
}

func deleteTokens(ctx context.Context, q db.Querier, org, device string) error {
	_, err := q.Exec(ctx, `DELETE FROM browser_tokens WHERE org_id = $1 AND device_id = $2`, org, device)
	return err
}

func deleteExpiredTokens(ctx context.Context, q db.Querier, gone *int64, now db.Time) error {
	// tenant: a sweep over all organisations
	return db.Affected(ctx, q, gone, `DELETE FROM browser_tokens WHERE expires_at <= $1`, now)
}
