package signin

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"

	"soniq/internal/identity/auth"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
)

//go:embed web
var web embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{"when": when}).ParseFS(web, "web/*.html"))

// page holds the data of a template.
type page struct {
	Title, Fault       string
	Form               string // CSRF token of every form
	Brand              string
	Signed             bool
	Confirm            bool // forms that change the sign-in data ask for the password
	Who, Role, OrgName string
	Email, Next, Name  string
	Back               template.URL // address of the program that sent the visitor, which was checked; "": none
	BackHost           string

	Ask     auth.AuthorizationRequest
	Request string
	Choices []choice
	Refused []access.Scope

	Message    Message
	Keys       []auth.Key
	Made       *auth.Key
	MayPartner bool
	Grants     []auth.Grant
	Sessions   []session
	TOTP       bool
	Seed       string
	Picture    template.URL
	Codes      []string
}

// show renders a page.
func (s *Service) show(w http.ResponseWriter, v *visitor, status int, name string, p page) {
	p.Brand, p.Form = s.cfg.Brand, v.csrfToken
	if p.Signed = v.isSignedIn(); p.Signed {
		p.Confirm = !v.isFresh(s.cfg.Clock.Now())
		p.Who, p.Role, p.OrgName = v.user.Email, v.user.Role, v.org.Name
	}
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, name+".html", p); err != nil {
		s.cfg.Log.Error("account page not rendered", "page", name, "err", err)
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

func style(w http.ResponseWriter, _ *http.Request) {
	text, err := web.ReadFile("web/style.css")
	if err != nil {
		http.Error(w, "not found", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	w.Header().Set("Cache-Control", "max-age=300")
	_, _ = w.Write(text)
}

// when formats a time to the minute; "never" for the zero time.
func when(t db.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2 Jan 2006 15:04 MST")
}
