// Package vendortest simulates CRM vendors in tests. It validates every request against the vendor's API description, as far as it is
// restated in described/. It answers with the examples of the description, or as the test sets.
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

// Request is a request that the simulated vendor received.
type Request struct {
	Method, Path, Query string
	Header              http.Header
	Body                string
}

// String returns the request in one line.
func (r Request) String() string {
	q, _ := url.QueryUnescape(r.Query)
	return strings.TrimSpace(fmt.Sprintf("%s %s?%s %s", r.Method, r.Path, q, r.Body))
}

// Answer is an answer of the simulated vendor. Status 0 is 200. A nil Body is the example of the description, a
// string is sent unchanged, other values are sent as JSON.
type Answer struct {
	Status int
	Header map[string]string
	Body   any
}

// Vendor is a simulated vendor. It is safe for concurrent use.
type Vendor struct {
	URL string

	t          testing.TB
	router     routers.Router
	authServer *authServer

	mu       sync.Mutex // guards the rest
	received []Request
	respond  func(r Request) *Answer
}

// New starts a simulated vendor with the description of this name. It is closed at the end of the test.
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
	v.authServer = &authServer{vendor: v, tokens: map[string]bool{}, refresh: map[string]bool{}, codes: map[string]code{}, Life: 1800}
	if v.router, err = gorillamux.NewRouter(model); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(v.serve))
	t.Cleanup(s.Close)
	v.URL = s.URL
	return v
}

// Respond sets the function that answers requests. If it returns nil, the example of the description is sent.
func (v *Vendor) Respond(f func(r Request) *Answer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.respond = f
}

// Requests returns the requests to the API, without those to the authorization server.
func (v *Vendor) Requests() []Request {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]Request{}, v.received...)
}

// CountRequests returns the number of requests with this method and path prefix.
func (v *Vendor) CountRequests(method, path string) (n int) {
	for _, r := range v.Requests() {
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
	in, err := v.validate(r)
	if err != nil {
		v.t.Errorf("not as the vendor describes it: %s: %v", x, err)
		w.WriteHeader(http.StatusNotImplemented)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if v.authServer.serve(w, r) {
		return
	}
	v.mu.Lock()
	v.received = append(v.received, x)
	says := v.respond
	v.mu.Unlock()
	var a *Answer
	if !v.authServer.admits(r) {
		a = &Answer{Status: http.StatusUnauthorized, Body: "{}"}
	} else if says != nil {
		a = says(x)
	}
	v.answer(w, in, a)
}

// validate validates a request against the description.
func (v *Vendor) validate(r *http.Request) (*openapi3filter.RequestValidationInput, error) {
	// the description has paths without a server address
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

// answer sends the answer of the test, or the example of the first success status.
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
	v.checkResponse(in, status, text)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// checkResponse validates success answers against the description, so that no test simulates an answer the vendor
// cannot send.
func (v *Vendor) checkResponse(in *openapi3filter.RequestValidationInput, status int, text string) {
	if status >= 300 || !json.Valid([]byte(text)) {
		return
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: status,
		Header:  http.Header{"Content-Type": {"application/json"}},
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true}}
	out.SetBodyBytes([]byte(text))
	if err := openapi3filter.ValidateResponse(context.Background(), out); err != nil {
		v.t.Errorf("the simulated vendor would send an invalid answer: %s %s: %v", in.Request.Method, in.Request.URL.Path, err)
	}
}
