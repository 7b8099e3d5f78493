package signin

import (
	"context"
	"fmt"
	"net/http"

	"soniq/internal/platform/db"
)

// The page on which a signed-in person enters the password or a code again, so that the API lets the session make sensitive changes.

// showConfirm shows the form, or goes on if the password was entered recently.
func (s *Service) showConfirm(w http.ResponseWriter, r *http.Request, v *visitor) error {
	next := local(r.URL.Query().Get("next"))
	if v.isFresh(s.cfg.Clock.Now()) {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return nil
	}
	s.show(w, v, http.StatusOK, "confirm", page{Title: confirmTitle, Next: next})
	return nil
}

const confirmTitle = "Enter your password again"

// confirmAgain checks the password or code, and notes it in the session.
func (s *Service) confirmAgain(w http.ResponseWriter, r *http.Request, v *visitor) error {
	next := local(r.PostForm.Get("next"))
	if _, err := s.reauthenticate(r, v, true); err != nil {
		return s.showFault(err, func(text string, status int) error {
			s.show(w, v, status, "confirm", page{Title: confirmTitle, Next: next, Fault: text})
			return nil
		})
	}
	err := s.write(r, v, "account.confirm", v.session.ID, func(ctx context.Context, tx db.Querier) error {
		return confirmSession(ctx, tx, v.session, db.At(s.cfg.Clock.Now()))
	})
	if err != nil {
		return fmt.Errorf("store confirmation: %w", err)
	}
	http.Redirect(w, r, next, http.StatusSeeOther)
	return nil
}
