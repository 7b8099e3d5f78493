package signin

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"soniq/internal/identity/auth"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

func (s *Service) overview(w http.ResponseWriter, _ *http.Request, v *visitor) error {
	s.show(w, v, http.StatusOK, "overview", page{Title: "Your account", Choices: choices(s.cfg.Keys.MaxScopes(v.org, v.user.Role), nil)})
	return nil
}

func (s *Service) keys(w http.ResponseWriter, r *http.Request, v *visitor) error {
	return s.showKeys(w, r, v, page{}, http.StatusOK)
}

// showKeys shows the keys that the user may see, and the scopes for new keys.
func (s *Service) showKeys(w http.ResponseWriter, r *http.Request, v *visitor, p page, status int) error {
	who := s.principal(r.Context(), v)
	all, err := s.cfg.Keys.VisibleKeys(r.Context(), who)
	if err != nil {
		return err
	}
	now := s.cfg.Clock.Now()
	for _, k := range all {
		if k.RevokedAt.IsZero() || now.Before(k.RevokedAt.Time) {
			p.Keys = append(p.Keys, k)
		}
	}
	p.Title, p.MayPartner = "API Keys", slices.Contains(who.Scopes, access.PartnersWrite)
	if p.Choices == nil {
		p.Choices = choices(who.Scopes, nil)
	}
	s.show(w, v, status, "keys", p)
	return nil
}

// createKey creates a key with at most the user's own permissions.
func (s *Service) createKey(w http.ResponseWriter, r *http.Request, v *visitor) error {
	who := s.principal(r.Context(), v)
	in := &auth.CreateIn{Body: auth.NewKey{Name: strings.TrimSpace(r.PostForm.Get("name")), Kind: access.Kind(r.PostForm.Get("kind")),
		Environment: r.PostForm.Get("environment")}}
	for _, x := range r.PostForm["scope"] {
		in.Body.Scopes = append(in.Body.Scopes, access.Scope(x))
	}
	in.Body.AllowedIPs = strings.FieldsFunc(r.PostForm.Get("allowed_ips"), func(c rune) bool {
		return c == ',' || c == ' ' || c == '\n' ||
			c == '\r'
	})
	if !slices.Contains(who.Scopes, access.UsersAdmin) {
		in.Body.UserID = v.user.ID // without users:admin the key belongs to the user and ends with the user
	}
	if err := s.confirm(r, v); err != nil {
		return s.showFault(err, func(text string, status int) error {
			return s.showKeys(w, r, v, page{Fault: text, Name: in.Body.Name, Choices: choices(who.Scopes, in.Body.Scopes)}, status)
		})
	}
	if days := map[string]int{"30": 30, "90": 90, "365": 365}[r.PostForm.Get("days")]; days > 0 {
		in.Body.ExpiresAt = db.At(s.cfg.Clock.Now().Add(time.Duration(days) * 24 * time.Hour))
	}
	var made auth.Key
	err := s.writeRecord(r, v, "apikeys.create", func(ctx context.Context) (string, error) {
		out, err := s.cfg.Keys.Create(ctx, in)
		if err == nil {
			made = out.Body
		}
		return made.ID, err
	})
	if e := refusal(err); e != nil {
		return s.showKeys(w, r, v, page{Fault: errorText(e), Name: in.Body.Name, Choices: choices(who.Scopes, in.Body.Scopes)}, e.Status())
	}
	if err != nil {
		return err
	}
	return s.showKeys(w, r, v, page{Made: &made}, http.StatusCreated)
}

func (s *Service) revokeKey(w http.ResponseWriter, r *http.Request, v *visitor) error {
	err := s.writeRecord(r, v, "apikeys.delete", func(ctx context.Context) (string, error) {
		id := r.PathValue("id")
		if err := s.checkVisible(ctx, r, v, id); err != nil {
			return "", err
		}
		return id, s.cfg.Keys.Revoke(ctx, &auth.OneIn{ID: id})
	})
	if err != nil {
		return err
	}
	http.Redirect(w, r, "/account/keys", http.StatusSeeOther)
	return nil
}

// rotateKey replaces a key. The old key works for another day.
func (s *Service) rotateKey(w http.ResponseWriter, r *http.Request, v *visitor) error {
	if err := s.confirm(r, v); err != nil {
		return s.showFault(err, func(text string, status int) error { return s.showKeys(w, r, v, page{Fault: text}, status) })
	}
	var made auth.Key
	err := s.writeRecord(r, v, "apikeys.rotate", func(ctx context.Context) (string, error) {
		if err := s.checkVisible(ctx, r, v, r.PathValue("id")); err != nil {
			return "", err
		}
		out, err := s.cfg.Keys.Rotate(ctx, &auth.RotateIn{OneIn: auth.OneIn{ID: r.PathValue("id")}})
		if err == nil {
			made = out.Body
		}
		return made.ID, err
	})
	if e := refusal(err); e != nil && e.Status() != http.StatusNotFound {
		return s.showKeys(w, r, v, page{Fault: errorText(e)}, e.Status())
	}
	if err != nil {
		return err
	}
	return s.showKeys(w, r, v, page{Made: &made}, http.StatusCreated)
}

// checkVisible refuses a key that the user may not see.
func (s *Service) checkVisible(ctx context.Context, r *http.Request, v *visitor, id string) error {
	all, err := s.cfg.Keys.VisibleKeys(ctx, s.principal(r.Context(), v))
	if err == nil && !slices.ContainsFunc(all, func(k auth.Key) bool { return k.ID == id }) {
		err = op.NotFound("key")
	}
	return err
}

// writeRecord is write for an operation that returns the record of its audit line.
func (s *Service) writeRecord(r *http.Request, v *visitor, operation string, do func(ctx context.Context) (record string,
	err error)) error {
	p := s.principal(r.Context(), v)
	return s.cfg.DB.TxContext(access.With(r.Context(), p), func(ctx context.Context, tx db.Querier) error {
		record, err := do(ctx)
		if err != nil {
			return err
		}
		return s.writeAudit(ctx, tx, p, operation, record)
	})
}
