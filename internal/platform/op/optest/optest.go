// Package optest calls operations in tests like a real request: through the router, the validation and the pipeline.
package optest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Server handles the requests of a test.
type Server struct {
	t       testing.TB
	handler http.Handler
}

// New serves the operations on the database.
func New(t testing.TB, d *db.DB, operations ...op.Operation) *Server {
	t.Helper()
	mux := http.NewServeMux()
	op.NewAPI(mux, &op.Pipeline{DB: d, Sealer: open{}, Log: slog.New(slog.NewTextHandler(testWriter{t}, nil)),
		Cursors: op.Cursors{Key: []byte("a key for tests")}}, operations)
	return &Server{t, mux}
}

// Admin returns a principal of the organisation with all scopes.
func Admin(org string) access.Principal {
	return access.Principal{OrgID: org, KeyID: "key_test", KeyName: "test", Kind: access.StandardKey,
		Environment: access.Live, Scopes: access.All(), Role: access.MostTrusted, Source: netip.MustParseAddr("127.0.0.1")}
}

// Answer is the response to a request.
type Answer struct {
	t      testing.TB
	Status int
	Header http.Header
	Bytes  []byte
	Body   map[string]any // nil if the response is not a JSON object
}

// Do sends a request with a JSON body (nil: none; a string: unchanged) and additional header lines "Name: value". The
// path is without the prefix.
func (s *Server) Do(p access.Principal, method, path string, body any, header ...string) *Answer {
	s.t.Helper()
	if body != nil {
		header = append([]string{"Content-Type: application/json"}, header...)
	}
	return s.Send(p, method, path, bytes.NewReader(encode(s.t, body)), header...)
}

// Send sends a request with a body that is read from a reader.
func (s *Server) Send(p access.Principal, method, path string, body io.Reader, header ...string) *Answer {
	s.t.Helper()
	r := httptest.NewRequest(method, op.Prefix+path, body)
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	if p.OrgID != "" {
		r = r.WithContext(access.With(r.Context(), p))
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	a := &Answer{t: s.t, Status: w.Code, Header: w.Header(), Bytes: w.Body.Bytes()}
	_ = json.Unmarshal(a.Bytes, &a.Body)
	return a
}

func encode(t testing.TB, body any) []byte {
	t.Helper()
	if body == nil {
		return nil
	}
	if text, ok := body.(string); ok {
		return []byte(text)
	}
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Want fails the test at once if the response has another status.
func (a *Answer) Want(status int) *Answer {
	a.t.Helper()
	if a.Status != status {
		a.t.Fatalf("status %d, want %d: %s", a.Status, status, a.Bytes)
	}
	return a
}

// Refused fails the test at once if the response is not a problem with the code and exactly these violations. Each is "field code"; they
// may be in any order. Without violations it compares only the code.
func (a *Answer) Refused(code string, violations ...string) *Answer {
	a.t.Helper()
	if got := a.Text("code"); got != code {
		a.t.Fatalf("code %q, want %q: %s", got, code, a.Bytes)
	}
	if len(violations) == 0 {
		return a
	}
	found := map[string]bool{}
	list, _ := a.Body["errors"].([]any)
	for _, e := range list {
		v, _ := e.(map[string]any)
		found[v["field"].(string)+" "+v["code"].(string)] = true
	}
	for _, v := range violations {
		if !found[v] {
			a.t.Fatalf("violation %q is missing: %s", v, a.Bytes)
		}
	}
	if len(found) != len(violations) {
		a.t.Fatalf("%d violations, want %d: %s", len(found), len(violations), a.Bytes)
	}
	return a
}

// At returns the value at a path such as "sip.username" or "data.0.id"; nil if there is none.
func (a *Answer) At(path string) any {
	var v any = a.Body
	for name := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[name]
		case []any:
			var i int
			if json.Unmarshal([]byte(name), &i) != nil || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// Text returns the value at a path as a string; empty if it is not a string.
func (a *Answer) Text(path string) string {
	s, _ := a.At(path).(string)
	return s
}

// Has reports whether the object at a path (empty: the whole body) has the member, even if null.
func (a *Answer) Has(path, member string) bool {
	v := any(a.Body)
	if path != "" {
		v = a.At(path)
	}
	object, _ := v.(map[string]any)
	_, ok := object[member]
	return ok
}

// open is a Sealer without encryption. It still detects a value read at another location.
type open struct{}

func (open) Seal(plain, associated []byte) ([]byte, error) {
	return append(append(bytes.Clone(associated), 0), plain...), nil
}

func (open) Unseal(sealed, associated []byte) ([]byte, error) {
	plain, ok := bytes.CutPrefix(sealed, append(bytes.Clone(associated), 0))
	if !ok {
		return nil, errors.New("sealed for another place")
	}
	return plain, nil
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}
