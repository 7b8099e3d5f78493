package signin

import (
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"

	"soniq/internal/identity/auth"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
)

// choice is a scope on the consent page.
type choice struct {
	Scope access.Scope
	Words string
	On    bool
}

// showConsent shows the consent page of an authorization request. A user that has granted all of it before is
// redirected back at once.
func (s *Service) showConsent(w http.ResponseWriter, r *http.Request, v *visitor) error {
	a, to, err := s.cfg.OAuth.ParseAuthorizationRequest(r.Context(), r.URL.Query())
	if err != nil {
		return s.requestFailed(w, r, v, to, err)
	}
	if !v.isSignedIn() {
		http.Redirect(w, r, "/account/login?next="+escape(r.URL.RequestURI()), http.StatusSeeOther)
		return nil
	}
	p := resourceOwner(v)
	agreed, err := s.cfg.OAuth.HasConsent(r.Context(), a, p)
	if err != nil {
		return err
	}
	if agreed {
		return s.issueCode(w, r, v, a, a.Scopes)
	}
	granted := s.cfg.OAuth.GrantableScopes(a, p)
	if len(granted) == 0 {
		return s.leadBack(w, r, v, s.cfg.OAuth.DenyURL(a), "It asks for what you may not do yourself")
	}
	s.show(w, v, http.StatusOK, "consent", page{Title: "Let " + a.Client.Name + " act for you?", Ask: a, Request: r.URL.RawQuery,
		Choices: choices(granted, granted),
		Refused: slices.DeleteFunc(slices.Clone(a.Scopes), func(x access.Scope) bool { return slices.Contains(granted, x) })})
	return nil
}

func resourceOwner(v *visitor) auth.ResourceOwner {
	return auth.ResourceOwner{Org: v.org, UserID: v.user.ID, Role: v.user.Role}
}

// requestFailed reports an error to the client. It shows the error if the browser must not be redirected.
func (s *Service) requestFailed(w http.ResponseWriter, r *http.Request, v *visitor, to string, err error) error {
	var known *auth.OAuthError
	if !errors.As(err, &known) {
		return err
	}
	return s.leadBack(w, r, v, to, known.Description+" ("+known.Code+")")
}

// leadBack leads a person back to the client without a page only if the client is on their own machine. Otherwise the page shows the host,
// and the person decides: anybody may register a client, and its address would make this server an open redirector (RFC 9700 §4.11.2). to
// is "" if there is no way back.
func (s *Service) leadBack(w http.ResponseWriter, r *http.Request, v *visitor, to, why string) error {
	if auth.IsLoopback(to) {
		http.Redirect(w, r, to, http.StatusSeeOther)
		return nil
	}
	p := page{Title: "That did not work", Fault: "A program sent you here with a request that cannot be answered: " + why + ".",
		Back: template.URL(to), BackHost: auth.RedirectTarget(to)} // the address is one of the client's, and its scheme was checked
	s.show(w, v, http.StatusBadRequest, "message", p)
	return nil
}

// consent processes the user's decision.
func (s *Service) consent(w http.ResponseWriter, r *http.Request, v *visitor) error {
	if !v.isSignedIn() {
		return &fault{http.StatusForbidden, "You are not signed in any more."}
	}
	q, err := url.ParseQuery(r.PostForm.Get("request"))
	if err != nil {
		return &fault{http.StatusBadRequest, "The form could not be read."}
	}
	a, to, err := s.cfg.OAuth.ParseAuthorizationRequest(r.Context(), q)
	if err != nil {
		return s.requestFailed(w, r, v, to, err)
	}
	if r.PostForm.Get("answer") != "allow" {
		http.Redirect(w, r, s.cfg.OAuth.DenyURL(a), http.StatusSeeOther)
		return nil
	}
	var scopes []access.Scope
	for _, x := range r.PostForm["scope"] {
		scopes = append(scopes, access.Scope(x))
	}
	return s.issueCode(w, r, v, a, scopes)
}

func (s *Service) issueCode(w http.ResponseWriter, r *http.Request, v *visitor, a auth.AuthorizationRequest, scopes []access.Scope) error {
	var to string
	err := s.write(r, v, "oauth.authorize", a.Client.ID, func(ctx context.Context, tx db.Querier) (err error) {
		to, err = s.cfg.OAuth.IssueCode(ctx, tx, a, resourceOwner(v), scopes)
		return err
	})
	if err != nil {
		return err
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

// choices returns the scopes with their descriptions; those in on are ticked.
func choices(all, on []access.Scope) []choice {
	out := make([]choice, len(all))
	for i, x := range all {
		out[i] = choice{x, x.Description(), slices.Contains(on, x)}
	}
	return out
}
