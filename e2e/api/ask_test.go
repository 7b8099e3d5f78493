package api_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"soniq/e2e/rig"
	"soniq/internal/platform/op"
)

// desk is an API client with one credential that checks every response against the description.
type desk struct {
	*rig.Client
	doc *document
}

// call sends a request. It fails the test unless the response matches the description and every error is a complete
// problem (RFC 9457).
func (d desk) call(t *testing.T, method, path string, body any, header ...string) rig.Response {
	t.Helper()
	raw, ok := body.([]byte)
	if body != nil && !ok {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	q, err := http.NewRequest(method, "http://"+d.Server.HTTP+d.Prefix+path, bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if d.Key != "" {
		q.Header.Set("Authorization", "Bearer "+d.Key)
	}
	if d.As != "" {
		q.Header.Set("On-Behalf-Of", d.As)
	}
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	r := send(t, q)
	checkProblem(t, method+" "+path, r)
	d.judge(t, q, r)
	return r
}

// judge checks a response against the description, which names only one of the three prefixes.
func (d desk) judge(t failer, q *http.Request, r rig.Response) {
	t.Helper()
	described := q.Clone(q.Context())
	described.URL.Path = prefix + strings.TrimPrefix(q.URL.Path, d.Prefix)
	described.Host, described.URL.Host, described.URL.Scheme = "", "", ""
	d.doc.judge(t, described, r)
}

// want sends a request as call does, expects a status, and decodes the body into out.
func (d desk) want(t *testing.T, status int, method, path string, body, out any, header ...string) rig.Response {
	t.Helper()
	r := d.call(t, method, path, body, header...)
	if r.Status != status {
		t.Fatalf("%s %s: got %d, want %d: %s", method, path, r.Status, status, r.Body)
	}
	if out != nil {
		if err := json.Unmarshal(r.Body, out); err != nil {
			t.Fatalf("%s %s: %v in %s", method, path, err, r.Body)
		}
	}
	return r
}

// refused sends a request as call does and expects an error with a status and code. It returns the invalid fields
// with their codes.
func (d desk) refused(t *testing.T, status int, code, method, path string, body any, header ...string) map[string]string {
	t.Helper()
	r := d.call(t, method, path, body, header...)
	p := problemOf(r)
	if r.Status != status || p.Code != code {
		t.Errorf("%s %s: got %d %s, want %d %s: %s", method, path, r.Status, p.Code, status, code, r.Body)
	}
	fields := map[string]string{}
	for _, e := range p.Errors {
		fields[e.Field] = e.Code
	}
	return fields
}

func problemOf(r rig.Response) op.Problem {
	var p op.Problem
	_ = json.Unmarshal(r.Body, &p)
	return p
}

// failer receives failures.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
}

// checkProblem checks that every error is a complete problem.
func checkProblem(t failer, what string, r rig.Response) {
	t.Helper()
	id := r.Header.Get("X-Request-Id")
	if id == "" {
		t.Errorf("%s: no X-Request-Id", what)
	}
	if r.Status < 400 {
		return
	}
	p := problemOf(r)
	switch {
	case r.Header.Get("Content-Type") != "application/problem+json":
		t.Errorf("%s: %d is %s, not a problem: %.200s", what, r.Status, r.Header.Get("Content-Type"), r.Body)
	case p.Status != r.Status || p.Title == "" || p.RequestID != id && r.Header.Get("Idempotency-Replayed") == "" || p.Type == "":
		t.Errorf("%s: problem is not whole for %d and request %s: %s", what, r.Status, id, r.Body)
	case !slices.Contains(op.Codes(), p.Code):
		t.Errorf("%s: %q is no code of the contract", what, p.Code)
	case goWords.Match(r.Body):
		t.Errorf("%s: the error has words of a Go program: %s", what, r.Body)
	case r.Status >= 500 && r.Status != http.StatusNotImplemented && p.Code != "action_timeout": // the stage's phones may not answer
		t.Errorf("%s: %d %s", what, r.Status, r.Body)
	}
}

// goWords are what errors of Go's decoders say (https://github.com/dmtrKovalenko/fff/issues/328).
var goWords = regexp.MustCompile(`json: |strconv\.|unmarshal|Go (struct|value)|of type (u?int|float|string|bool|map)|\bu?int(8|16|32|64)\b`)

// get requests an address outside the API, without a credential.
func get(t *testing.T, s *rig.Server, path string, header ...string) rig.Response {
	t.Helper()
	q, err := http.NewRequest(http.MethodGet, "http://"+s.HTTP+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	return send(t, q)
}

var plain = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func send(t *testing.T, q *http.Request) rig.Response {
	t.Helper()
	a, err := plain.Do(q)
	if err != nil {
		t.Fatalf("%s %s: %v", q.Method, q.URL.Path, err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", q.Method, q.URL.Path, err)
	}
	return rig.Response{Status: a.StatusCode, Header: a.Header, Body: b}
}
