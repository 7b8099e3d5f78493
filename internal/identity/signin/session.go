package signin

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"soniq/internal/identity/auth"
	"soniq/internal/identity/org"
	"soniq/internal/identity/user"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/platform/seal"
)

// Session is the kind of credential of a signed-in browser in the audit log.
const Session = access.BrowserSession

// How long an unused session lasts, how long any session lasts, and how long a session may wait for the second factor.
const (
	sessionLife     = 24 * time.Hour
	longestSession  = 7 * 24 * time.Hour
	pendingCodeLife = 5 * time.Minute
	touchInterval   = time.Minute
	tokenLength     = 40
)

// visitor is the browser of a request, with its session and user if it is signed in.
type visitor struct {
	session   session
	user      user.User
	org       org.Organization
	csrfToken string // CSRF token of its forms
}

// isSignedIn reports whether the visitor is signed in.
func (v *visitor) isSignedIn() bool { return v.session.ID != "" && !v.session.pendingCode }

// handler serves a page to a visitor. Its errors are shown as a page.
type handler func(w http.ResponseWriter, r *http.Request, v *visitor) error

// fault is an error that is shown to the visitor.
type fault struct {
	status int
	text   string
}

// Error implements error.
func (f *fault) Error() string { return f.text }

// withVisitor finds the visitor, and refuses frames and forms of other sites.
func (s *Service) withVisitor(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		setSecurityHeaders(w.Header())
		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		v, err := s.visitor(w, r)
		if err == nil {
			err = s.checkOrigin(r, v)
		}
		if err == nil {
			err = h(w, r, v)
		}
		if err != nil {
			s.showError(w, r, v, err)
		}
	}
}

// securityPolicy is the content security policy of the account pages (CSP Level 3).
const securityPolicy = "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'"

// setSecurityHeaders forbids frames, scripts and caching.
func setSecurityHeaders(h http.Header) {
	h.Set("Content-Security-Policy", securityPolicy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
}

// checkOrigin refuses requests from other sites: in a frame, or a form without the CSRF token.
func (s *Service) checkOrigin(r *http.Request, v *visitor) error {
	if slices.Contains([]string{"iframe", "frame", "embed", "object"}, r.Header.Get("Sec-Fetch-Dest")) {
		return &fault{http.StatusForbidden, "This page is not shown within another."}
	}
	if r.Method != http.MethodPost {
		return nil
	}
	if err := r.ParseForm(); err != nil {
		return &fault{http.StatusBadRequest, "The form could not be read."}
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" ||
		subtle.ConstantTimeCompare([]byte(r.PostForm.Get("form")), []byte(v.csrfToken)) != 1 {
		return &fault{http.StatusForbidden, "This form is too old, or not one of ours. Go back, load the page again, and repeat it."}
	}
	return nil
}

// signedIn redirects visitors without a session to the sign-in page.
func (s *Service) signedIn(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request, v *visitor) error {
		if v.isSignedIn() {
			return h(w, r, v)
		}
		to := "/account/login"
		if r.Method == http.MethodGet && r.URL.Path != "/account" {
			to += "?next=" + escape(r.URL.RequestURI())
		}
		http.Redirect(w, r, to, http.StatusSeeOther)
		return nil
	}
}

// visitor returns the visitor of a request. A browser without a cookie gets one that binds its forms.
func (s *Service) visitor(w http.ResponseWriter, r *http.Request) (*visitor, error) {
	v := &visitor{}
	if text := s.cookie(r, "session"); text != "" {
		if err := s.loadSession(r.Context(), v, text); err != nil {
			return v, err
		}
		if v.session.ID != "" {
			v.csrfToken = s.cfg.Seal.Digest("form " + text)
			return v, nil
		}
	}
	text := s.cookie(r, "visit")
	if len(text) != tokenLength {
		text = seal.Random(tokenLength)
		s.setCookie(w, r, "visit", text)
	}
	v.csrfToken = s.cfg.Seal.Digest("form " + text)
	return v, nil
}

// loadSession loads the session of a cookie, unless the session has ended or its user may not sign in any more.
func (s *Service) loadSession(ctx context.Context, v *visitor, text string) error {
	now := s.cfg.Clock.Now()
	x, err := sessionByDigest(ctx, s.cfg.DB.Read(ctx), s.cfg.Seal.Digest(text), db.At(now))
	if db.IsNone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find session: %w", err)
	}
	u, o, err := s.activeUser(ctx, x.orgID, x.userID)
	if err != nil || u.ID == "" {
		return err
	}
	x.Here = true
	v.session, v.user, v.org = x, u, o
	if !x.pendingCode && now.Sub(x.UsedAt.Time) > touchInterval {
		until := now.Add(sessionLife)
		if end := x.CreatedAt.Add(longestSession); until.After(end) {
			until = end
		}
		return s.cfg.DB.Tx(ctx, func(tx db.Querier) error { return touchSession(ctx, tx, x, db.At(now), db.At(until)) })
	}
	return nil
}

// activeUser returns a user who may sign in; without an id if the user may not.
func (s *Service) activeUser(ctx context.Context, orgID, id string) (user.User, org.Organization, error) {
	u, err := s.cfg.Users.Get(ctx, s.cfg.DB.Read(ctx), orgID, id)
	if db.IsNone(err) {
		return user.User{}, org.Organization{}, nil
	}
	if err != nil {
		return u, org.Organization{}, fmt.Errorf("find user: %w", err)
	}
	o, err := s.cfg.Orgs.Get(ctx, orgID)
	if err != nil {
		return u, o, fmt.Errorf("find organisation: %w", err)
	}
	if u.Status == user.Suspended || o.IsBlocked() || o.Sandbox() {
		return user.User{}, o, nil
	}
	return u, o, nil
}

// begin signs a browser in with a new session. The previous session is deleted, to prevent session fixation.
func (s *Service) begin(ctx context.Context, tx db.Querier, w http.ResponseWriter, r *http.Request, v *visitor, orgID, userID string,
	half bool) error {
	if v.session.ID != "" {
		if _, err := s.endSession(ctx, tx, v.session.orgID, v.session.userID, v.session.ID); err != nil {
			return fmt.Errorf("end session: %w", err)
		}
	}
	text, now, life := seal.Random(tokenLength), s.cfg.Clock.Now(), sessionLife
	if half {
		life = pendingCodeLife
	}
	x := session{ID: db.NewID("ses"), orgID: orgID, userID: userID, digest: s.cfg.Seal.Digest(text), pendingCode: half,
		CreatedAt: db.At(now), expiresAt: db.At(now.Add(life)), Source: op.ClientAddress(ctx).String(), Agent: userAgent(r.UserAgent())}
	if err := insertSession(ctx, tx, x); err != nil {
		return fmt.Errorf("begin session: %w", err)
	}
	db.OnCommit(tx, func() { s.setCookie(w, r, "session", text) })
	return nil
}

// cookieName returns the name of a cookie. Over TLS it has the __Host- prefix (RFC 6265bis §4.1.3.2), which binds
// the cookie to this server.
func (s *Service) cookieName(r *http.Request, name string) (full string, secure bool) {
	secure = r.TLS != nil || strings.HasPrefix(s.cfg.BaseURL, "https://")
	if secure {
		return "__Host-" + s.cfg.Brand + "_" + name, true
	}
	return s.cfg.Brand + "_" + name, false
}

func (s *Service) cookie(r *http.Request, name string) string {
	full, _ := s.cookieName(r, name)
	c, err := r.Cookie(full)
	if err != nil {
		return ""
	}
	return c.Value
}

// setCookie sets a cookie that ends with the browser. An empty value deletes it.
func (s *Service) setCookie(w http.ResponseWriter, r *http.Request, name, value string) {
	s.setLongCookie(w, r, name, value, 0)
}

// setLongCookie sets a cookie that the browser keeps for life; 0: until it ends.
func (s *Service) setLongCookie(w http.ResponseWriter, r *http.Request, name, value string, life time.Duration) {
	full, secure := s.cookieName(r, name)
	c := &http.Cookie{Name: full, Value: value, Path: "/", HttpOnly: true, Secure: secure, SameSite: http.SameSiteLaxMode,
		MaxAge: int(life / time.Second)}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// Person returns the principal of the person who is signed in in the browser of a request. Its key is the session. It is empty if nobody is
// signed in. If org is the sandbox of the person's organisation, the principal belongs to the sandbox.
func (s *Service) Person(r *http.Request, org string) (access.Principal, error) {
	v := &visitor{}
	text := s.cookie(r, "session")
	if text == "" {
		return access.Principal{}, nil
	}
	if err := s.loadSession(r.Context(), v, text); err != nil || !v.isSignedIn() {
		return access.Principal{}, err
	}
	p := s.principal(r.Context(), v)
	if org == "" || org == p.OrgID {
		return p, nil
	}
	o, err := s.cfg.Orgs.Get(r.Context(), org)
	if err == nil && o.LiveID == p.OrgID {
		p.OrgID = org
	}
	return p, err
}

// principal returns the principal of the visitor: the user's scopes in their organisation.
func (s *Service) principal(ctx context.Context, v *visitor) access.Principal {
	return access.Principal{OrgID: v.org.ID, UserID: v.user.ID, UserName: v.user.Name, KeyID: v.session.ID, KeyName: "account page",
		Kind: Session, Environment: access.Live, Role: v.user.Role,
		Scopes: s.cfg.Keys.MaxScopes(v.org, v.user.Role), Source: op.ClientAddress(ctx), Timezone: v.org.Timezone,
		Limits: auth.RateLimits(v.org)}
}

// write runs do in a transaction and writes an audit line.
func (s *Service) write(r *http.Request, v *visitor, operation, record string, do func(ctx context.Context, tx db.Querier) error) error {
	p := s.principal(r.Context(), v)
	return s.cfg.DB.TxContext(access.With(r.Context(), p), func(ctx context.Context, tx db.Querier) error {
		if err := do(ctx, tx); err != nil {
			return err
		}
		return s.writeAudit(ctx, tx, p, operation, record)
	})
}

func (s *Service) writeAudit(ctx context.Context, tx db.Querier, p access.Principal, operation, record string) error {
	return op.WriteAudit(ctx, tx, db.At(s.cfg.Clock.Now()), op.AuditLine{Org: p.OrgID, Operation: operation, Target: op.Target(ctx),
		KeyID: p.KeyID, KeyName: p.KeyName,
		Credential: string(p.Kind), UserID: p.UserID, Record: record, Status: http.StatusOK})
}

// showError shows an error: the refusal with its reason, or an internal error.
func (s *Service) showError(w http.ResponseWriter, r *http.Request, v *visitor, err error) {
	var known *fault
	var refused *op.Error
	switch {
	case errors.As(err, &known):
	case errors.As(err, &refused) && refused.Status() < 500:
		known = &fault{refused.Status(), errorText(refused)}
	default:
		s.cfg.Log.Error("account page failed", "target", op.Target(r.Context()), "request", op.RequestID(r.Context()), "err", err)
		known = &fault{http.StatusInternalServerError, "Something went wrong on our side (request " + op.RequestID(r.Context()) + ")."}
	}
	s.show(w, v, known.status, "message", page{Title: "That did not work", Fault: known.text})
}

// errorText returns an error of an operation as one sentence.
func errorText(e *op.Error) string {
	var all []string
	for _, f := range e.Fields {
		all = append(all, f.Field+": "+f.Message)
	}
	if len(all) == 0 {
		return e.Detail
	}
	return strings.Join(all, "; ")
}

// userAgent returns a shortened User-Agent header.
func userAgent(agent string) string {
	const most = 200
	if len(agent) > most {
		agent = agent[:most]
	}
	return strings.ToValidUTF8(agent, "")
}
