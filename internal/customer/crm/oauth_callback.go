package crm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"time"

	"soniq/internal/customer/crm/adapter"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

const (
	// CallbackPath is the redirect URI to which vendors send browsers (RFC 6749 §3.1.2).
	CallbackPath = "/crm/oauth/callback"
	// StartPath is the page that begins an authorization. It leads a signed-in person to the vendor.
	StartPath = "/crm/oauth/start"
)

// Mount registers the page that begins an authorization, and the page of the redirect URI.
func (s *Service) Mount(mux *http.ServeMux) {
	mux.HandleFunc("GET "+StartPath, s.start)
	mux.HandleFunc("GET "+CallbackPath, s.callback)
}

// outcome is the text of the callback page and its HTTP status.
type outcome struct {
	Title, Text string
	status      int
}

var callbackTemplate = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{{.Title}}</title>
<link rel="stylesheet" href="/account/style.css"></head><body><main><h1>{{.Title}}</h1><p>{{.Text}}</p><p>You can close this window.</p></main></body></html>
`))

// start binds an authorization to the session of the browser, and leads it to the vendor. A browser without a session signs in first. So
// nobody can lead a stranger to agree to a connection of their own organisation: the stranger cannot sign in there.
func (s *Service) start(w http.ResponseWriter, r *http.Request) {
	to, o := s.beginAuthorization(r)
	if to == "" {
		showOutcome(w, o)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// lost is the outcome of a state that is not valid.
var lost = outcome{"This link is no longer good", "It works once, for ten minutes, and in the browser in which it was opened first. Ask for a " +
	"new one where you began.", http.StatusBadRequest}

// beginAuthorization returns the address at which the browser goes on: to sign in, or the vendor's consent page. It is "" if the link is
// not valid, or not for this person.
func (s *Service) beginAuthorization(r *http.Request) (to string, o outcome) {
	ctx, state := r.Context(), r.URL.Query().Get("state")
	a, err := s.findAuthorization(ctx, state)
	if db.IsNone(err) || err == nil && !s.cfg.Clock.Now().Before(a.expires) {
		return "", lost
	}
	var who access.Principal
	if err == nil {
		who, err = s.cfg.Browsers.Person(r, a.org)
	}
	if err == nil && who.KeyID == "" {
		return s.cfg.BaseURL + "/account/login?next=" + url.QueryEscape(r.URL.RequestURI()), o
	}
	if err == nil && !mayConnect(who, a) {
		return "", outcome{"This link is not for you", "Sign in as somebody who may connect systems in the organisation that asked for it.",
			http.StatusForbidden}
	}
	var c Connection
	if err == nil {
		c, err = s.connectionOf(ctx, a)
	}
	if err == nil {
		err = s.bindAuthorization(ctx, a, state, who.KeyID)
	}
	if db.IsNone(err) {
		return "", lost
	}
	p, d, ok := s.vendorConnectionOf(c)
	if err != nil || !ok {
		s.cfg.Log.Warn("an authorization did not begin", "org", a.org, "connection", a.connection, "err", err)
		return "", outcome{"That did not work", "Begin again in a minute.", http.StatusServiceUnavailable}
	}
	return d.OAuthClient(s.env, p, adapter.Grant{}).AuthCodeURL(state, d.AuthorizeOptions(a.verifier)...), o
}

// mayConnect reports whether a person may connect systems in the organisation of an authorization, or in the organisation that acts for it.
func mayConnect(who access.Principal, a pendingAuthorization) bool {
	return (who.OrgID == a.org || who.OrgID == a.by.Home) && access.One(access.ContactsWrite).MetBy(who.Scopes)
}

// connectionOf returns the connection of an authorization with its settings.
func (s *Service) connectionOf(ctx context.Context, a pendingAuthorization) (Connection, error) {
	c, err := getConnection(ctx, s.cfg.DB.Read(ctx), a.org, a.connection)
	if err == nil {
		err = s.unsealSettings(&c)
	}
	return c, err
}

// callback finishes an authorization from the parameters of the redirect and shows the result. The page loads no
// resources except its style sheet, runs no scripts and cannot be framed.
func (s *Service) callback(w http.ResponseWriter, r *http.Request) {
	showOutcome(w, s.finishAuthorization(r))
}

// showOutcome shows the result of an authorization.
func showOutcome(w http.ResponseWriter, o outcome) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "text/html; charset=utf-8")
	var b bytes.Buffer
	if err := callbackTemplate.Execute(&b, o); err != nil {
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	w.WriteHeader(o.status)
	_, _ = w.Write(b.Bytes())
}

// finishAuthorization ends an authorization in the browser that began it: it exchanges the code for tokens and stores them.
func (s *Service) finishAuthorization(r *http.Request) outcome {
	ctx, q := r.Context(), r.URL.Query()
	if len(q.Get("state")) < 20 || len(q.Get("state")) > 200 {
		return lost
	}
	who, err := s.cfg.Browsers.Person(r, "")
	if err == nil && who.KeyID == "" {
		return lost
	}
	var a pendingAuthorization
	if err == nil {
		a, err = s.takeAuthorization(ctx, q.Get("state"), who.KeyID)
	}
	if db.IsNone(err) || err == nil && (a.session != who.KeyID || !s.cfg.Clock.Now().Before(a.expires)) {
		return lost
	}
	if err == nil {
		err = s.checkInitiator(ctx, a)
	}
	var c Connection
	if err == nil {
		c, err = s.connectionOf(ctx, a)
	}
	p, _, ok := s.vendorConnectionOf(c)
	if err == nil && ok && q.Get("code") != "" {
		err = s.exchangeCode(ctx, a, c, q)
	}
	var refused *op.Error
	switch {
	case errors.As(err, &refused):
		return outcome{"This link is no longer good", "Whoever began this may not connect systems any more.", http.StatusForbidden}
	case err != nil || !ok:
		s.cfg.Log.Warn("a system could not be connected", "org", a.org, "connection", a.connection, "err", err)
		return outcome{p.Title + " was not connected", "It did not give us what it had agreed to: " + errorText(err) + ". Begin again.",
			http.StatusBadGateway}
	case q.Get("code") == "":
		s.cfg.Log.Info("a system was not connected: consent was refused", "org", a.org, "connection", c.ID, "err",
			errorText(errors.New(q.Get("error"))))
		return outcome{p.Title + " was not connected", "It says that nobody agreed. Nothing has changed.", http.StatusOK}
	}
	return outcome{p.Title + " is connected", "“" + c.Name +
		"” is asked from now on when somebody calls. To end this, remove the connection.", http.StatusOK}
}

// checkInitiator refuses an authorization if the credential that started it is no longer valid.
func (s *Service) checkInitiator(ctx context.Context, a pendingAuthorization) error {
	return s.cfg.Credentials.Revalidate(ctx, access.Principal{OrgID: a.org, HomeID: a.by.Home, KeyID: a.by.Key, Kind: a.by.Kind,
		UserID: a.by.User, Environment: a.by.Env})
}

// exchangeTimeout bounds the exchange of a code.
const exchangeTimeout = 20 * time.Second

// exchangeCode exchanges a code for tokens, stores them and restarts the connection.
func (s *Service) exchangeCode(ctx context.Context, a pendingAuthorization, c Connection, q url.Values) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx),
		exchangeTimeout) // a code is valid once: the exchange continues if the browser disconnects
	defer cancel()
	p, d, _ := s.vendorConnectionOf(c)
	g := adapter.Grant{Login: d.LoginOf(q)}
	t, err := d.OAuthClient(s.env, p, g).Exchange(s.tokenContext(ctx), q.Get("code"), d.ExchangeOptions(a.verifier)...)
	if err != nil {
		return adapter.TokenError(err)
	}
	if err := d.ApplyToken(s.env, &g, t, q); err != nil {
		return err
	}
	return s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error { return s.saveAuthorization(ctx, tx, a, c, g) })
}

// saveAuthorization stores the tokens of a vendor and writes an audit line with the credential that started the
// authorization.
func (s *Service) saveAuthorization(ctx context.Context, tx db.Querier, a pendingAuthorization, c Connection, g adapter.Grant) error {
	if err := s.putGrant(ctx, tx, c, g); err != nil {
		return err
	}
	c.updatedAt = db.At(s.cfg.Clock.Now())
	if _, err := tx.Exec(ctx, `UPDATE crm_connections SET updated_at = $3 WHERE org_id = $1 AND id = $2`, c.org, c.ID,
		c.updatedAt); err != nil {
		return fmt.Errorf("write connection: %w", err)
	}
	s.publishChanged(tx, c.org)
	if err := s.readAfterAuthorization(ctx, tx, c); err != nil {
		return err
	}
	if err := s.retryRefusedWrites(ctx, tx, c); err != nil {
		return err
	}
	return op.WriteAudit(ctx, tx, c.updatedAt, op.AuditLine{Org: c.org, Operation: "crm.connections.agree", Target: op.Target(ctx),
		KeyID: a.by.Key, KeyName: a.by.Name, Credential: string(a.by.Kind), UserID: a.by.User, Record: c.ID, Status: http.StatusOK})
}

// readAfterAuthorization enqueues a read of the list, because access was just granted.
func (s *Service) readAfterAuthorization(ctx context.Context, tx db.Querier, c Connection) error {
	p, _ := adapter.FindProvider(c.Provider)
	a, wrong := s.adapterOf(p, c, c.settings)
	if _, list := a.(adapter.Directory); len(wrong) > 0 || !list || !c.enabled {
		return nil
	}
	return s.enqueueRead(ctx, tx, c)
}

// retryRefusedWrites enqueues the writes that failed because the vendor refused our credentials: the latest thousand.
func (s *Service) retryRefusedWrites(ctx context.Context, tx db.Querier, c Connection) error {
	const q = `SELECT ` + syncColumns + syncTables +
		`WHERE x.org_id = $1 AND x.connection_id = $2 AND x.status = 'failed' AND x.error LIKE $3
		ORDER BY x.id DESC LIMIT 1000`
	rows, err := tx.Query(ctx, q, c.org, c.ID, db.Escape(adapter.ErrAuth.Error())+"%")
	if err != nil {
		return fmt.Errorf("find refused writes: %w", err)
	}
	defer rows.Close()
	var all []Sync
	for rows.Next() {
		x, err := scanSync(rows.Scan)
		if err != nil {
			return fmt.Errorf("find refused writes: %w", err)
		}
		all = append(all, x)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for _, x := range all {
		x.Status, x.CreatedAt = "pending", db.At(s.cfg.Clock.Now())
		if _, err := putSync(ctx, tx, x); err != nil {
			return err
		}
		if err := s.enqueueSync(ctx, tx, x); err != nil {
			return err
		}
	}
	return nil
}
