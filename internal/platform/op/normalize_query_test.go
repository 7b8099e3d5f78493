package op_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op"
	"soniq/internal/platform/op/optest"
)

// Echo contains the received query.
type Echo struct {
	Phone  string   `json:"phone"`
	Status []string `json:"status" nullable:"false"`
	Since  string   `json:"since"`
}

// EchoIn is the input of the echo operation.
type EchoIn struct {
	Phone  string   `query:"phone"`
	Status []string `query:"status"`
	op.Span
}

func echo(_ context.Context, in *EchoIn) (*op.Out[Echo], error) {
	since, _, err := in.Times()
	if err != nil {
		return nil, err
	}
	e := Echo{Phone: in.Phone, Status: in.Status}
	if !since.IsZero() {
		e.Since = since.UTC().Format(time.RFC3339)
	}
	return op.OK(e)
}

func TestNormalizeQuery_Forms(t *testing.T) {
	t.Parallel()
	api := optest.New(t, dbtest.SQLite(t), op.New("echo", "GET /echo", access.Any, "Echo", echo))
	p := optest.Admin("org_x")
	p.Timezone = "Europe/Berlin"
	for query, want := range map[string][2]any{
		"phone=+12025550143":                {"phone", "+12025550143"},
		"phone=%2B12025550143":              {"phone", "+12025550143"},
		"phone=+1+202+555+0143":             {"phone", "+1 202 555 0143"},
		"phone=+0":                          {"phone", " 0"}, // not a number
		"status=a&status=b,c":               {"status.2", "c"},
		"status=a,b":                        {"status.1", "b"},
		"since=2026-07-01":                  {"since", "2026-06-30T22:00:00Z"},
		"since=2026-07-01T00:00:00Z":        {"since", "2026-07-01T00:00:00Z"},
		"since=2026-01-01T01:00:00%2B01:00": {"since", "2026-01-01T00:00:00Z"},
		// https://github.com/HeliosSoftware/hfs/issues/1296, https://github.com/spec-first/connexion/issues/353
		"since=2026-01-01T01:00:00+01:00":     {"since", "2026-01-01T00:00:00Z"},
		"since=2026-01-01T05:30:00.250+05:30": {"since", "2026-01-01T00:00:00Z"},
	} {
		if got := api.Do(p, "GET", "/echo?"+query, nil).Want(200).At(want[0].(string)); got != want[1] {
			t.Errorf("%s: %s is %v, want %v", query, want[0], got, want[1])
		}
	}
	p.Timezone = ""
	if got := api.Do(p, "GET", "/echo?since=2026-07-01", nil).Text("since"); got != "2026-07-01T00:00:00Z" {
		t.Errorf("without a time zone a day begins at %s", got)
	}
	api.Do(p, "GET", "/echo?phone=1&phone=2", nil).Want(400).Refused("invalid_query", "phone repeated")
	for _, query := range []string{"phone=%zz", "phone=1;status=a", "%=1"} {
		r := &url.URL{Path: "/echo", RawQuery: query}
		if a := do(t, p, r); a != 400 {
			t.Errorf("%s: %d, want 400", query, a)
		}
	}
	api.Do(p, "GET", "/echo?since=0000-01-01", nil).Want(400).Refused("invalid_query", "since invalid_time")
}

// do sends a request whose URL may be malformed.
func do(t *testing.T, p access.Principal, u *url.URL) int {
	t.Helper()
	mux := http.NewServeMux()
	op.NewAPI(mux, &op.Pipeline{}, []op.Operation{op.New("echo", "GET /echo", access.Any, "Echo", echo)})
	w := &status{header: http.Header{}}
	r := (&http.Request{Method: "GET", URL: &url.URL{Path: op.Prefix + u.Path, RawQuery: u.RawQuery}, Header: http.Header{}}).
		WithContext(access.With(t.Context(), p))
	mux.ServeHTTP(w, r)
	return w.code
}

type status struct {
	header http.Header
	code   int
}

func (s *status) Header() http.Header         { return s.header }
func (s *status) WriteHeader(code int)        { s.code = code }
func (s *status) Write(b []byte) (int, error) { return len(b), nil }

func TestCursors_BoundToQuery(t *testing.T) {
	t.Parallel()
	_, api, p := newThings(t, dbtest.SQLite(t))
	for range 3 {
		api.Do(p, "POST", "/things", map[string]any{"name": "thing"}).Want(201)
	}
	cursor := api.Do(p, "GET", "/things?limit=1&name=a", nil).Want(200).Text("next_cursor")
	api.Do(p, "GET", "/things?limit=2&name=a&fields=n&include_total=true&cursor="+cursor, nil).Want(200)
	for _, query := range []string{"", "name=b&", "name=a&since=2026-01-01&"} {
		api.Do(p, "GET", "/things?"+query+"cursor="+cursor, nil).Want(400).Refused("invalid_cursor")
	}
	api.Do(p, "GET", "/things?fields=n,nmae", nil).Want(400).Refused("invalid_query", "fields unknown_member")
}
