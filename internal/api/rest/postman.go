package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/op"
)

// Postman collection (schema v2.1.0), /postman.json, generated from the OpenAPI document: a folder per resource, a
// request with an example per operation. A request that creates something stores its id in a variable. A request that
// deletes it restores the previous value, so that a folder can be run from top to bottom.

// collection is the whole collection, or a folder in it.
type collection struct {
	Name        string      `json:"name,omitempty"`
	Description string      `json:"description,omitempty"`
	Info        *about      `json:"info,omitempty"`
	Auth        *postAuth   `json:"auth,omitempty"`
	Variables   []field     `json:"variable,omitempty"`
	Events      []postEvent `json:"event,omitempty"`
	Items       []any       `json:"item"` // collections or items
}

type about struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Schema      string `json:"schema"`
	ID          string `json:"_postman_id"`
}

type postAuth struct {
	Type   string  `json:"type"`
	Bearer []field `json:"bearer,omitempty"`
}

// field is a variable, a header or a parameter.
type field struct {
	Key         string `json:"key"`
	Value       string `json:"value"`
	Type        string `json:"type,omitempty"`
	Description string `json:"description,omitempty"`
	Disabled    bool   `json:"disabled,omitempty"`
}

type postEvent struct {
	Listen string     `json:"listen"`
	Script postScript `json:"script"`
}

type postScript struct {
	Type string   `json:"type"`
	Exec []string `json:"exec"`
}

type item struct {
	Name     string       `json:"name"`
	Events   []postEvent  `json:"event"`
	Request  postRequest  `json:"request"`
	Response []postAnswer `json:"response"`
}

type postRequest struct {
	Auth        *postAuth `json:"auth,omitempty"`
	Method      string    `json:"method"`
	Header      []field   `json:"header"`
	Body        *postBody `json:"body,omitempty"`
	URL         postURL   `json:"url"`
	Description string    `json:"description"`
}

type postBody struct {
	Mode    string `json:"mode"`
	Raw     string `json:"raw"`
	Options any    `json:"options"`
}

type postURL struct {
	Raw       string   `json:"raw"`
	Host      []string `json:"host"`
	Path      []string `json:"path"`
	Query     []field  `json:"query,omitempty"`
	Variables []field  `json:"variable,omitempty"`
}

// postAnswer is an example response.
type postAnswer struct {
	Name     string      `json:"name"`
	Original postRequest `json:"originalRequest"`
	Status   string      `json:"status"`
	Code     int         `json:"code"`
	Header   []field     `json:"header"`
	Body     string      `json:"body"`
	Language string      `json:"_postman_previewlanguage"`
}

// placeholderBase is replaced by the address of the server when the collection is requested.
const placeholderBase = "http://soniq.invalid/api/v1"

func (s *Server) postman(w http.ResponseWriter, r *http.Request) {
	text, err := s.collection()
	if err != nil {
		s.pageError(w, r, err)
		return
	}
	scheme := "http"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	base, _ := json.Marshal(scheme + "://" + r.Host + op.Prefix)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Disposition", `attachment; filename="soniq.postman_collection.json"`)
	_, _ = w.Write(bytes.Replace(text, []byte(`"`+placeholderBase+`"`), base, 1))
}

// unsetVariable is the value of a variable before something is created. A request with it returns not_found.
const unsetVariable = "none"

// buildCollection builds the collection.
func (s *Server) buildCollection() collection {
	variables := map[string]bool{}
	for _, o := range s.cfg.Operations {
		for _, name := range inPath.FindAllStringSubmatch(o.Path, -1) {
			variables[variable(o.Path, name[1])] = true
		}
	}
	c := collection{Info: &about{Name: "soniq", Description: s.api.OpenAPI().Info.Description + "\n\nSet the variables base_url (" +
		"…/api/v1, or …/sandbox/v1 with a test key) and api_key; the others are filled by the requests that make things.",
		Schema: "https://schema.getpostman.com/json/collection/v2.1.0/collection.json", ID: "50a1c0de-7e1e-4f00-8e00-0f7e1ec0de01"},
		Auth:      &postAuth{"bearer", []field{{Key: "token", Value: "{{api_key}}", Type: "string"}}},
		Variables: []field{{Key: "base_url", Value: placeholderBase}, {Key: "api_key", Value: ""}}}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		c.Variables = append(c.Variables, field{Key: name, Value: unsetVariable})
	}
	for _, tag := range s.api.OpenAPI().Tags {
		folder := collection{Name: tag.Name, Description: tag.Description, Items: []any{}}
		for _, o := range runOrder(s.operationsOf(tag.Name)) {
			if h := findDescribed(s.api.OpenAPI().Paths[op.Prefix+o.Path], o.ID); h != nil {
				folder.Items = append(folder.Items, itemOf(o, h, variables))
			}
		}
		c.Items = append(c.Items, folder)
	}
	return c
}

// runOrder sorts requests: those that create first, those that delete late, and those that end everything last, such
// as the end of a call or a reset.
func runOrder(all []op.Operation) []op.Operation {
	rank := func(o op.Operation) int {
		switch {
		case strings.HasSuffix(o.Path, "/end"), strings.HasSuffix(o.Path, "/reset"):
			return 100 + len(all)
		case o.Method == http.MethodPost && !strings.Contains(o.Path, "}"):
			return 0
		case o.Method == http.MethodDelete:
			return 3 + len(all) - strings.Count(o.Path, "/") // nested resources are deleted first
		case o.Method == http.MethodPost:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(all, func(a, b op.Operation) int { return rank(a) - rank(b) })
	return all
}

var inPath = regexp.MustCompile(`\{(\w+)\}`)

// variable returns the name of the variable for a path parameter: user_id for {id} in /users/{id}.
func variable(path, parameter string) string {
	before, _, _ := strings.Cut(path, "/{"+parameter+"}")
	last := before[strings.LastIndex(before, "/")+1:]
	switch {
	case parameter != "id":
		return parameter
	case last == "agents":
		return "user_id"
	case last == "cdr":
		return "call_id"
	}
	return idVariable(last)
}

// idVariable returns the name of the variable for the id of a resource, from the last segment of its path.
func idVariable(segment string) string {
	return strings.ReplaceAll(strings.TrimSuffix(segment, "s"), "-", "_") + "_id"
}

// itemOf returns the request of an operation.
func itemOf(o op.Operation, h *huma.Operation, variables map[string]bool) item {
	r := postRequest{Method: o.Method, Header: []field{}, Description: h.Description,
		URL: postURL{Raw: "{{base_url}}", Host: []string{"{{base_url}}"}}}
	if o.Need.IsPublic() {
		r.Auth = &postAuth{Type: "noauth"}
	}
	for segment := range strings.SplitSeq(strings.TrimPrefix(o.Path, "/"), "/") {
		segment = inPath.ReplaceAllString(segment, ":$1")
		r.URL.Path = append(r.URL.Path, segment)
		r.URL.Raw += "/" + segment
	}
	for _, p := range h.Parameters {
		r.parameter(o, p)
	}
	if h.RequestBody != nil {
		r.body(h.RequestBody.Content["application/json"], variables)
	}
	i := item{Name: h.Summary, Request: r, Response: []postAnswer{},
		Events: []postEvent{{"test", postScript{"text/javascript", testScripts(o, h, variables)}}}}
	for _, status := range []int{http.StatusOK, http.StatusCreated, http.StatusAccepted} {
		if a := h.Responses[fmt.Sprint(status)]; a != nil && a.Content["application/json"] != nil {
			i.Response = append(i.Response, postAnswer{Name: fmt.Sprint(status, " ", http.StatusText(status)), Original: r,
				Status: http.StatusText(status), Code: status,
				Header: []field{{Key: "Content-Type", Value: "application/json"}}, Body: pretty(a.Content["application/json"].Example),
				Language: "json"})
		}
	}
	return i
}

func (r *postRequest) parameter(o op.Operation, p *huma.Param) {
	f := field{Key: p.Name, Description: p.Description, Disabled: !p.Required}
	switch {
	case p.In == "path":
		f.Value, f.Disabled = "{{"+variable(o.Path, p.Name)+"}}", false
		r.URL.Variables = append(r.URL.Variables, f)
	case p.In == "query":
		r.URL.Query = append(r.URL.Query, f)
	case p.Name == "Idempotency-Key":
		f.Value, f.Disabled = "{{$guid}}", false
		r.Header = append(r.Header, f)
	case p.In == "header":
		r.Header = append(r.Header, f)
	}
}

// idReference matches a member of a body that may have a variable.
var idReference = regexp.MustCompile(`"(\w+_id)": "[^"]*"`)

func (r *postRequest) body(c *huma.MediaType, variables map[string]bool) {
	if c == nil {
		return
	}
	raw := idReference.ReplaceAllStringFunc(pretty(c.Example), func(found string) string {
		if name := idReference.FindStringSubmatch(found)[1]; variables[name] {
			return fmt.Sprintf("%q: %q", name, "{{"+name+"}}")
		}
		return found
	})
	r.Header = append(r.Header, field{Key: "Content-Type", Value: "application/json"})
	r.Body = &postBody{Mode: "raw", Raw: raw, Options: map[string]any{"raw": map[string]string{"language": "json"}}}
}

func pretty(v any) string {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil || v == nil {
		return "{}"
	}
	return string(b)
}

// testScripts returns the scripts that run after the answer: they check that its status is documented, and store the
// id of a created resource.
func testScripts(o op.Operation, h *huma.Operation, variables map[string]bool) []string {
	lines := []string{fmt.Sprintf(`pm.test("%s answers as described", () => pm.expect(pm.response.code).to.be.oneOf([%s]));`, o.ID,
		strings.Join(slices.Sorted(maps.Keys(h.Responses)), ", ")),
		`pm.test("the server does not fail", () => pm.expect(pm.response.code).not.to.be.oneOf([500, 503]));`}
	last := o.Path[strings.LastIndex(o.Path, "/")+1:]
	if name := idVariable(last); o.Method == http.MethodPost && variables[name] {
		lines = append(lines, `if (pm.response.code < 300 && pm.response.json().id) {`,
			`  const kept = pm.collectionVariables;`,
			fmt.Sprintf(`  kept.set("%s_before", kept.get("%s"));`, name, name),
			fmt.Sprintf(`  kept.set("%s", pm.response.json().id);`, name), `}`)
	}
	if o.Method == http.MethodDelete && strings.HasSuffix(last, "}") {
		name := variable(o.Path, strings.Trim(last, "{}"))
		lines = append(lines, fmt.Sprintf(`if (pm.response.code < 300) pm.collectionVariables.set("%s", pm.collectionVariables.get("%s_before") || "%s");`, name, name, unsetVariable))
	}
	return lines
}
