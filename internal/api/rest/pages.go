package rest

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"sort"
	"strings"

	"soniq/internal/platform/access"
	"soniq/internal/platform/op"
)

// resources are the fifteen published resource types.
var resources = []string{"calls", "cdr", "recordings", "queues", "agents", "users", "contacts", "memory", "sms", "numbers", "flows",
	"devices", "voicemail", "webhooks", "partners"}

// endpoint is one entry of the index.
type endpoint struct {
	Method  string     `json:"method"`
	Path    string     `json:"path"`
	Scope   string     `json:"scope"`
	Rollout op.Rollout `json:"rollout"`
	Summary string     `json:"summary"`
}

// index serves the machine-readable list of operations. Read operations are listed under /v1.
func (s *Server) index(w http.ResponseWriter, r *http.Request) {
	if e := s.cfg.Pipeline.Charge(r.Context(), w.Header(), op.Reads, true); e != nil {
		op.Write(w, r, e)
		return
	}
	env, shown := "production", access.Live
	if e, _ := r.Context().Value(environmentKey{}).(access.Environment); e == access.Sandbox {
		env, shown = "sandbox", access.Sandbox
	}
	writeJSON(w, http.StatusOK, struct {
		Service     string     `json:"service"`
		Version     string     `json:"version"`
		Status      string     `json:"status"`
		Environment string     `json:"environment"`
		Resources   []string   `json:"resources"`
		Endpoints   []endpoint `json:"endpoints"`
	}{"soniq", op.Version, "live", env, resources, s.endpoints(shown)})
}

func (s *Server) endpoints(env access.Environment) []endpoint {
	all := make([]endpoint, 0, len(s.cfg.Operations))
	for _, o := range s.cfg.Operations {
		if o.OnlyEnvironment != "" && o.OnlyEnvironment != string(env) {
			continue
		}
		prefix := op.Prefix
		if !o.Writes() {
			prefix = "/v1"
		}
		if env == access.Sandbox {
			prefix = "/sandbox/v1"
		}
		all = append(all, endpoint{o.Method, prefix + strings.NewReplacer("{", ":", "}", "").Replace(o.Path), o.Need.String(), o.Rollout,
			o.Summary})
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].Path < all[j].Path })
	return all
}

func (s *Server) openapi(w http.ResponseWriter, r *http.Request) {
	text, err := s.document()
	if err != nil {
		s.pageError(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}

// pageError answers that a generated page could not be built.
func (s *Server) pageError(w http.ResponseWriter, r *http.Request, err error) {
	s.cfg.Log.Error("page not generated", "path", r.URL.Path, "err", err)
	op.Write(w, r, op.Unexpected(err))
}

// health reports that the process runs.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	state := map[string]string{"status": "ok"}
	if notice := s.cfg.Readiness.Notice(); notice != "" {
		state["notice"] = notice
	}
	writeJSON(w, http.StatusOK, state)
}

// ready reports whether the node accepts calls and requests: not during start and drain, nor without its database,
// nor as a restored copy that is not confirmed.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if err := s.cfg.Readiness.Ready(r.Context()); err != nil {
		w.Header().Set("Retry-After", "2")
		writeJSON(w, http.StatusServiceUnavailable, map[string]string{"status": "not ready", "reason": err.Error()})
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
}

// errorPage serves the page of an error code. The type of a problem refers to it.
func errorPage(w http.ResponseWriter, r *http.Request) {
	code := r.PathValue("code")
	status, title, help, ok := op.Help(code)
	if !ok {
		op.Write(w, r, op.NotFound("error code"))
		return
	}
	writePage(w, pagePolicy)
	_, _ = fmt.Fprintf(w, page, html.EscapeString(title), html.EscapeString(title),
		fmt.Sprintf("<p><code>%s</code>, HTTP %d</p><p>%s</p>", html.EscapeString(code), status, html.EscapeString(help)))
}

// errorsPage serves the list of all codes.
func errorsPage(w http.ResponseWriter, _ *http.Request) {
	var b strings.Builder
	b.WriteString("<p>Refusals are problems (RFC 9457) with one of these codes.</p><dl>")
	for _, code := range op.Codes() {
		status, title, help, _ := op.Help(code)
		_, _ = fmt.Fprintf(&b, `<dt><a href="/errors/%s"><code>%s</code></a> (%d) %s</dt><dd>%s</dd>`, html.EscapeString(code),
			html.EscapeString(code), status, html.EscapeString(title), html.EscapeString(help))
	}
	writePage(w, pagePolicy)
	_, _ = fmt.Fprintf(w, page, "Error codes", "Error codes", b.String()+"</dl>")
}

// homePage leads browsers to the console. Other programs, and builds without a console, get links to the documentation.
func (s *Server) homePage(w http.ResponseWriter, r *http.Request) {
	if s.cfg.Console != "" && strings.Contains(r.Header.Get("Accept"), "text/html") {
		w.Header().Set("Vary", "Accept")
		http.Redirect(w, r, s.cfg.Console, http.StatusSeeOther)
		return
	}
	writePage(w, pagePolicy)
	_, _ = fmt.Fprintf(w, page, "soniq", "soniq", `<p>A telephony platform is running here.</p><ul>
<li><a href="/account">Account</a>: sign in, access keys, connected assistants</li>
<li><a href="/docs">API reference</a></li><li><a href="/openapi.json">OpenAPI 3.1 description</a></li>
<li><a href="/postman.json">Postman collection</a></li>
<li><a href="/llms.txt">llms.txt</a>, for language models</li>
<li><a href="/v1">Index</a></li><li><a href="/ready">Is it ready?</a></li></ul>`)
}

const page = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>%s</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><link rel="stylesheet" href="/docs/page.css"></head>
<body><h1>%s</h1>%s</body></html>
`
