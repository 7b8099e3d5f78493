// Package vendortest stands in for vendors of CRM systems in tests: it holds every request against the vendor's own description, as far
// as it is restated in described/, and answers with examples, or as a test says.
package vendortest

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

//go:embed described
var described embed.FS

// A Request is what the stand-in was asked.
type Request struct {
	Method, Path, Query string
	Header              http.Header
	Body                string
}

// String is a request in one line.
func (r Request) String() string {
	q, _ := url.QueryUnescape(r.Query)
	return strings.TrimSpace(fmt.Sprintf("%s %s?%s %s", r.Method, r.Path, q, r.Body))
}

// An Answer is what the stand-in says. Status 0 is 200; Body nil is the example of the description, a string is sent as it is.
type Answer struct {
	Status int
	Header map[string]string
	Body   any
}

// A Vendor is the stand-in. It is safe for concurrent use.
type Vendor struct {
	URL string

	t      testing.TB
	router routers.Router
	login  *login

	mu   sync.Mutex // guards the rest
	got  []Request
	says func(r Request) *Answer
}

// New starts the stand-in of a vendor whose description has this name. It ends with the test.
func New(t testing.TB, name string) *Vendor {
	t.Helper()
	text, err := described.ReadFile("described/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	model, err := openapi3.NewLoader().LoadFromData(text)
	if err == nil {
		err = model.Validate(context.Background())
	}
	if err != nil {
		t.Fatalf("the description of %s is none: %v", name, err)
	}
	v := &Vendor{t: t}
	v.login = &login{vendor: v, tokens: map[string]bool{}, refresh: map[string]bool{}, codes: map[string]code{}, Life: 1800}
	if v.router, err = gorillamux.NewRouter(model); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(v.serve))
	t.Cleanup(s.Close)
	v.URL = s.URL
	return v
}

// Says has a test answer; nil leaves a request to the example of the description.
func (v *Vendor) Says(f func(r Request) *Answer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.says = f
}

// Seen are the requests to the API, those for tokens left out.
func (v *Vendor) Seen() []Request {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]Request{}, v.got...)
}

// Asked counts the requests whose path begins so.
func (v *Vendor) Asked(method, path string) (n int) {
	for _, r := range v.Seen() {
		if r.Method == method && strings.HasPrefix(r.Path, path) {
			n++
		}
	}
	return n
}

func (v *Vendor) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	x := Request{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Clone(), string(body)}
	in, err := v.hold(r)
	if err != nil {
		v.t.Errorf("not as the vendor describes it: %s: %v", x, err)
		w.WriteHeader(http.StatusNotImplemented)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if v.login.serve(w, r) {
		return
	}
	v.mu.Lock()
	v.got = append(v.got, x)
	says := v.says
	v.mu.Unlock()
	var a *Answer
	if !v.login.admits(r) {
		a = &Answer{Status: http.StatusUnauthorized, Body: "{}"}
	} else if says != nil {
		a = says(x)
	}
	v.answer(w, in, a)
}

// hold holds a request against the description.
func (v *Vendor) hold(r *http.Request) (*openapi3filter.RequestValidationInput, error) {
	// the description names paths, not where they are
	at := r.Clone(r.Context())
	at.Body = r.Body
	route, parameters, err := v.router.FindRoute(at)
	if err != nil {
		return nil, err
	}
	in := &openapi3filter.RequestValidationInput{Request: at, PathParams: parameters, Route: route, Options: &openapi3filter.Options{
		AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, MultiError: true, RejectWhenRequestBodyNotSpecified: true}}
	for name := range r.URL.Query() {
		known := false
		for _, p := range append(route.Operation.Parameters, route.PathItem.Parameters...) {
			known = known || p.Value.In == "query" && p.Value.Name == name
		}
		if !known {
			return nil, fmt.Errorf("it knows no parameter %q", name)
		}
	}
	return in, openapi3filter.ValidateRequest(r.Context(), in)
}

// answer says what a test says, or the example of the first success.
func (v *Vendor) answer(w http.ResponseWriter, in *openapi3filter.RequestValidationInput, a *Answer) {
	if a == nil {
		a = &Answer{}
	}
	status, body := a.Status, a.Body
	if body == nil {
		for _, s := range []int{200, 201, 202, 204} {
			r := in.Route.Operation.Responses.Status(s)
			if r == nil || status != 0 && status != s {
				continue
			}
			status = s
			if c := r.Value.Content.Get("application/json"); c != nil {
				body = c.Example
			}
			break
		}
	}
	text, ok := body.(string)
	if !ok && body != nil {
		b, _ := json.Marshal(body)
		text = string(b)
	}
	for name, value := range a.Header {
		w.Header().Set(name, value)
	}
	w.Header().Set("Content-Type", "application/json")
	if status == 0 {
		status = http.StatusOK
	}
	v.check(in, status, text)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// check holds successes against the description, so that no test tells what the vendor would not.
func (v *Vendor) check(in *openapi3filter.RequestValidationInput, status int, text string) {
	if status >= 300 || !json.Valid([]byte(text)) {
		return
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: status, Header: http.Header{"Content-Type": {"application/json"}},
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true}}
	out.SetBodyBytes([]byte(text))
	if err := openapi3filter.ValidateResponse(context.Background(), out); err != nil {
		v.t.Errorf("the stand-in answers what the vendor would not: %s %s: %v", in.Request.Method, in.Request.URL.Path, err)
	}
}
