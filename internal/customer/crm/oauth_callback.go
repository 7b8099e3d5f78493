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

	"golang.org/x/oauth2"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// CallbackPath is the redirect URI to which vendors send browsers (RFC 6749 §3.1.2).
const CallbackPath = "/crm/oauth/callback"

// Mount registers the page of the redirect URI.
func (s *Service) Mount(mux *http.ServeMux) { mux.HandleFunc("GET "+CallbackPath, s.callback) }

// outcome is the text of the callback page and its HTTP status.
type outcome struct {
	Title, Text string
	status      int
}

var callbackTemplate = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{{.Title}}</title>
<link rel="stylesheet" href="/account/style.css"></head><body><main><h1>{{.Title}}</h1><p>{{.Text}}</p><p>You can close this window.</p></main></body></html>
`))

// callback finishes an authorization from the parameters of the redirect and shows the result. The page loads no
// resources except its style sheet, runs no scripts and cannot be framed.
func (s *Service) callback(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "text/html; charset=utf-8")
	o := s.finishAuthorization(r.Context(), r.URL.Query())
	var b bytes.Buffer
	if err := callbackTemplate.Execute(&b, o); err != nil {
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	w.WriteHeader(o.status)
	_, _ = w.Write(b.Bytes())
}

// finishAuthorization ends an authorization: it exchanges the code for tokens and stores them.
func (s *Service) finishAuthorization(ctx context.Context, q url.Values) outcome {
	lost := outcome{"This link is no longer good", "It works once, and for ten minutes. Ask for a new one where you began.", http.StatusBadRequest}
	if len(q.Get("state")) < 20 || len(q.Get("state")) > 200 {
		return lost
	}
	a, err := s.takeAuthorization(ctx, q.Get("state"))
	if db.IsNone(err) || err == nil && !s.Now().Before(a.expires) {
		return lost
	}
	if err == nil {
		err = s.checkInitiator(ctx, a)
	}
	var c Connection
	if err == nil {
		if c, err = getConnection(ctx, s.DB.Read(ctx), a.org, a.connection); err == nil {
			err = s.unsealSettings(&c)
		}
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
		s.Log.Warn("a system could not be connected", "org", a.org, "connection", a.connection, "err", err)
		return outcome{p.title + " was not connected", "It did not give us what it had agreed to: " + errorText(err) + ". Begin again.", http.StatusBadGateway}
	case q.Get("code") == "":
		s.Log.Info("a system was not connected: consent was refused", "org", a.org, "connection", c.ID, "err", clip(q.Get("error")))
		return outcome{p.title + " was not connected", "It says that nobody agreed. Nothing has changed.", http.StatusOK}
	}
	return outcome{p.title + " is connected", "“" + c.Name + "” is asked from now on when somebody calls. To end this, remove the connection.", http.StatusOK}
}

// checkInitiator refuses an authorization if the credential that started it is no longer valid.
func (s *Service) checkInitiator(ctx context.Context, a pendingAuthorization) error {
	if s.CheckCredential == nil {
		return nil
	}
	return s.CheckCredential(ctx, access.Principal{OrgID: a.org, HomeID: a.by.Home, KeyID: a.by.Key, Kind: a.by.Kind, UserID: a.by.User, Environment: a.by.Env})
}

// exchangeTimeout bounds the exchange of a code.
const exchangeTimeout = 20 * time.Second

// exchangeCode exchanges a code for tokens, stores them and restarts the connection.
func (s *Service) exchangeCode(ctx context.Context, a pendingAuthorization, c Connection, q url.Values) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exchangeTimeout) // a code is valid once: the exchange continues if the browser disconnects
	defer cancel()
	p, d, _ := s.vendorConnectionOf(c)
	g := grant{Login: d.loginOf(q)}
	var options []oauth2.AuthCodeOption
	if d.endpoints.pkce {
		options = append(options, oauth2.VerifierOption(a.verifier))
	}
	t, err := d.client(s, p, g).Exchange(s.tokenContext(ctx), q.Get("code"), options...)
	if err != nil {
		return tokenError(err)
	}
	if err := s.applyToken(&g, d, t, q); err != nil {
		return err
	}
	return s.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error { return s.saveAuthorization(ctx, tx, a, c, g) })
}

// saveAuthorization stores the tokens of a vendor and writes an audit line with the credential that started the
// authorization.
func (s *Service) saveAuthorization(ctx context.Context, tx db.Querier, a pendingAuthorization, c Connection, g grant) error {
	if err := s.putGrant(ctx, tx, c, g); err != nil {
		return err
	}
	c.updatedAt = db.At(s.Now())
	if _, err := tx.Exec(ctx, `UPDATE crm_connections SET updated_at = $3 WHERE org_id = $1 AND id = $2`, c.org, c.ID, c.updatedAt); err != nil {
		return fmt.Errorf("write connection: %w", err)
	}
	s.publishChanged(tx, c.org)
	if err := s.readAfterAuthorization(ctx, tx, c); err != nil {
		return err
	}
	if err := s.retryRefusedWrites(ctx, tx, c); err != nil {
		return err
	}
	return op.WriteAudit(ctx, tx, c.updatedAt, op.AuditLine{Org: c.org, Operation: "crm.connections.agree", Target: op.Target(ctx), KeyID: a.by.Key,
		KeyName: a.by.Name, Credential: string(a.by.Kind), UserID: a.by.User, Record: c.ID, Status: http.StatusOK})
}

// readAfterAuthorization enqueues a read of the list, because access was just granted.
func (s *Service) readAfterAuthorization(ctx context.Context, tx db.Querier, c Connection) error {
	p, _ := findProvider(c.Provider)
	a, wrong := p.adapterOf(s, c, c.settings)
	if _, list := a.(Directory); len(wrong) > 0 || !list || !c.enabled {
		return nil
	}
	return s.enqueueRead(ctx, tx, c)
}

// retryRefusedWrites enqueues the writes that failed because the vendor refused our credentials: the latest thousand.
func (s *Service) retryRefusedWrites(ctx context.Context, tx db.Querier, c Connection) error {
	const q = `SELECT ` + syncColumns + syncTables + `WHERE x.org_id = $1 AND x.connection_id = $2 AND x.status = 'failed' AND x.error LIKE $3
		ORDER BY x.id DESC LIMIT 1000`
	rows, err := tx.Query(ctx, q, c.org, c.ID, db.Escape(ErrAuth.Error())+"%")
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
		x.Status, x.CreatedAt = "pending", db.At(s.Now())
		if _, err := putSync(ctx, tx, x); err != nil {
			return err
		}
		if err := s.enqueueSync(ctx, tx, x); err != nil {
			return err
		}
	}
	return nil
}
