package signin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// refusal returns the error with which an operation refused a request; nil for any other error.
func refusal(err error) *op.Error {
	var e *op.Error
	if errors.As(err, &e) && e.Status() < 500 {
		return e
	}
	return nil
}

func (s *Service) assistants(w http.ResponseWriter, r *http.Request, v *visitor) error {
	all, err := s.cfg.Keys.Grants(r.Context(), v.org.ID, v.user.ID)
	if err != nil {
		return fmt.Errorf("list grants: %w", err)
	}
	s.show(w, v, http.StatusOK, "assistants", page{Title: "Assistants", Grants: all})
	return nil
}

func (s *Service) revokeAssistant(w http.ResponseWriter, r *http.Request, v *visitor) error {
	id := r.PathValue("id")
	err := s.write(r, v, "oauth.revoke", id, func(ctx context.Context, tx db.Querier) error {
		return s.cfg.Keys.RevokeGrant(ctx, tx, v.org.ID, v.user.ID, id)
	})
	if err != nil {
		return err
	}
	http.Redirect(w, r, "/account/assistants", http.StatusSeeOther)
	return nil
}

func (s *Service) security(w http.ResponseWriter, r *http.Request, v *visitor) error {
	return s.showSecurity(w, r, v, page{}, http.StatusOK)
}

func (s *Service) showSecurity(w http.ResponseWriter, r *http.Request, v *visitor, p page, status int) error {
	q := s.cfg.DB.Read(r.Context())
	l, err := getLogin(r.Context(), q, v.org.ID, v.user.ID)
	if err != nil {
		return fmt.Errorf("find login: %w", err)
	}
	if p.Sessions, err = sessionsOf(r.Context(), q, v.org.ID, v.user.ID, db.At(s.cfg.Clock.Now())); err != nil {
		return fmt.Errorf("list sessions: %w", err)
	}
	for i := range p.Sessions {
		p.Sessions[i].Here = p.Sessions[i].ID == v.session.ID
	}
	p.Title, p.TOTP = "Security", l.totp != nil
	if l.totpNew != nil && !p.TOTP {
		seed, err := s.cfg.Seal.Unseal(l.totpNew, seedAAD(v.org.ID, v.user.ID))
		if err != nil {
			return fmt.Errorf("read seed: %w", err)
		}
		p.Seed = base32Text.EncodeToString(seed)
		address, err := totpAddress(seed, s.cfg.Brand, v.user.Email)
		if err != nil {
			return err
		}
		if p.Picture, err = picture(address); err != nil {
			return err
		}
	}
	s.show(w, v, status, "security", p)
	return nil
}

// checkPassword checks the current password before a change of the sign-in data. Wrong passwords count as failed
// sign-ins.
func (s *Service) checkPassword(r *http.Request, v *visitor) (login, error) {
	return s.reauthenticate(r, v, false)
}

// confirm checks that the person at the browser is the one who signed in: the sign-in is fresh, or the form has the current password or a
// code of the authenticator. An attacker with a stolen session can therefore not gain permanent access.
func (s *Service) confirm(r *http.Request, v *visitor) error {
	if v.isFresh(s.cfg.Clock.Now()) {
		return nil
	}
	_, err := s.reauthenticate(r, v, true)
	return err
}

// isFresh reports whether the visitor entered a password or code within the last minutes.
func (v *visitor) isFresh(now time.Time) bool {
	return now.Sub(v.session.Confirmed.Time) < op.ConfirmedFor
}

// reauthenticate checks the current password in the form, or a code of the authenticator if code is true.
func (s *Service) reauthenticate(r *http.Request, v *visitor, code bool) (l login, err error) {
	a, err := s.beginAttempt(r, v.user.Email)
	if err != nil {
		return l, err
	}
	if l, err = getLogin(r.Context(), s.cfg.DB.Read(r.Context()), v.org.ID, v.user.ID); err != nil {
		return l, fmt.Errorf("find login: %w", err)
	}
	text := r.PostForm.Get("current")
	good, err := s.matches(r.Context(), text, l.hash)
	if err != nil {
		return l, err
	}
	err = s.cfg.DB.TxContext(r.Context(), func(ctx context.Context, tx db.Querier) error {
		if !good && code && l.totp != nil {
			if good, err = s.codeMatches(ctx, tx, l, text); err != nil {
				return err
			}
		}
		if !good {
			return nil
		}
		return s.attemptSucceeded(ctx, tx, a)
	})
	switch {
	case err == nil && !good && text == "" && code:
		err = &fault{http.StatusForbidden, "Enter your current password: you entered it more than 15 minutes ago."}
	case err == nil && !good:
		err = &fault{http.StatusForbidden, "The current password is wrong."}
	}
	return l, err
}

// changePassword changes the password and ends every other session.
func (s *Service) changePassword(w http.ResponseWriter, r *http.Request, v *visitor) error {
	again := func(text string, status int) error { return s.showSecurity(w, r, v, page{Fault: text}, status) }
	password := r.PostForm.Get("password")
	if text := passwordFault(password, v.user.Email); text != "" {
		return again(text, http.StatusUnprocessableEntity)
	}
	if password != r.PostForm.Get("again") {
		return again("The two new passwords are not the same.", http.StatusUnprocessableEntity)
	}
	if _, err := s.checkPassword(r, v); err != nil {
		return s.showFault(err, again)
	}
	hash, err := s.hash(r.Context(), password)
	if err != nil {
		return err
	}
	err = s.write(r, v, "account.password", v.user.ID, func(ctx context.Context, tx db.Querier) error {
		if err := setHash(ctx, tx, v.org.ID, v.user.ID, hash, db.At(s.cfg.Clock.Now())); err != nil {
			return err
		}
		if err := s.endSessions(ctx, tx, v.org.ID, v.user.ID); err != nil {
			return err
		}
		return s.begin(ctx, tx, w, r, v, v.org.ID, v.user.ID, false)
	})
	if err != nil {
		return err
	}
	http.Redirect(w, r, "/account/security", http.StatusSeeOther)
	return nil
}

// showFault shows a fault on its page and returns any other error.
func (s *Service) showFault(err error, again func(text string, status int) error) error {
	var known *fault
	if errors.As(err, &known) {
		return again(known.text, known.status)
	}
	return err
}

// startTOTP creates a seed for an authenticator.
func (s *Service) startTOTP(w http.ResponseWriter, r *http.Request, v *visitor) error {
	if err := s.confirm(r, v); err != nil {
		return s.showFault(err, func(text string, status int) error { return s.showSecurity(w, r, v, page{Fault: text}, status) })
	}
	sealed, err := s.cfg.Seal.Seal(newSeed(), seedAAD(v.org.ID, v.user.ID))
	if err != nil {
		return fmt.Errorf("seal seed: %w", err)
	}
	err = s.cfg.DB.TxContext(r.Context(), func(ctx context.Context, tx db.Querier) error {
		l, err := getLogin(ctx, tx, v.org.ID, v.user.ID)
		if err != nil || l.totp != nil {
			return err
		}
		return setTOTP(ctx, tx, v.org.ID, v.user.ID, nil, sealed, 0)
	})
	if err != nil {
		return fmt.Errorf("offer seed: %w", err)
	}
	http.Redirect(w, r, "/account/security#totp", http.StatusSeeOther)
	return nil
}

// confirmTOTP enables the second factor after the user has entered a valid code.
func (s *Service) confirmTOTP(w http.ResponseWriter, r *http.Request, v *visitor) error {
	var codes []string
	err := s.write(r, v, "account.totp", v.user.ID, func(ctx context.Context, tx db.Querier) error {
		l, err := getLogin(ctx, tx, v.org.ID, v.user.ID)
		if err != nil || l.totpNew == nil || l.totp != nil {
			return errors.Join(err, &fault{http.StatusConflict, "Begin again: no code was expected."})
		}
		seed, err := s.cfg.Seal.Unseal(l.totpNew, seedAAD(v.org.ID, v.user.ID))
		if err != nil {
			return fmt.Errorf("read seed: %w", err)
		}
		step, ok := totpStep(seed, cleanCode(r.PostForm.Get("code")), s.cfg.Clock.Now(), 0)
		if !ok {
			return &fault{http.StatusUnprocessableEntity, "This code is wrong. Is the clock of your telephone right?"}
		}
		if err := setTOTP(ctx, tx, v.org.ID, v.user.ID, l.totpNew, nil, step); err != nil {
			return err
		}
		codes, err = s.newRecovery(ctx, tx, v)
		return err
	})
	if err != nil {
		return s.showFault(err, func(text string, status int) error { return s.showSecurity(w, r, v, page{Fault: text}, status) })
	}
	return s.showSecurity(w, r, v, page{Codes: codes}, http.StatusOK)
}

func (s *Service) newRecovery(ctx context.Context, tx db.Querier, v *visitor) ([]string, error) {
	if err := dropRecovery(ctx, tx, v.org.ID, v.user.ID); err != nil {
		return nil, err
	}
	codes := newRecoveryCodes()
	for _, c := range codes {
		if err := addRecovery(ctx, tx, v.org.ID, v.user.ID, s.cfg.Seal.Digest("recovery "+cleanCode(c))); err != nil {
			return nil, err
		}
	}
	return codes, nil
}

// stopTOTP disables the second factor.
func (s *Service) stopTOTP(w http.ResponseWriter, r *http.Request, v *visitor) error {
	if _, err := s.checkPassword(r, v); err != nil {
		return s.showFault(err, func(text string, status int) error { return s.showSecurity(w, r, v, page{Fault: text}, status) })
	}
	err := s.write(r, v, "account.totp", v.user.ID, func(ctx context.Context, tx db.Querier) error {
		if err := setTOTP(ctx, tx, v.org.ID, v.user.ID, nil, nil, 0); err != nil {
			return err
		}
		return dropRecovery(ctx, tx, v.org.ID, v.user.ID)
	})
	if err != nil {
		return err
	}
	http.Redirect(w, r, "/account/security", http.StatusSeeOther)
	return nil
}

func (s *Service) signOutBrowser(w http.ResponseWriter, r *http.Request, v *visitor) error {
	err := s.write(r, v, "account.session.end", r.PathValue("id"), func(ctx context.Context, tx db.Querier) error {
		ok, err := s.endSession(ctx, tx, v.org.ID, v.user.ID, r.PathValue("id"))
		if err == nil && !ok {
			err = op.NotFound("session")
		}
		return err
	})
	if err != nil {
		return err
	}
	http.Redirect(w, r, "/account/security", http.StatusSeeOther)
	return nil
}
