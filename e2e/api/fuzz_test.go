package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"

	"soniq/e2e/rig"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// TestSchemaFuzz_EveryOperation sends valid and invalid requests, generated from the description, to every operation
// and checks the responses. SONIQ_FUZZ_SEED repeats a run.
func TestSchemaFuzz_EveryOperation(t *testing.T) {
	seed, length := uint64(time.Now().UnixNano()), 10*time.Second
	if v, err := strconv.ParseUint(os.Getenv("SONIQ_FUZZ_SEED"), 10, 64); err == nil {
		seed = v
	}
	if os.Getenv("SONIQ_SOAK") != "" {
		length = 10 * time.Minute
	}
	t.Logf("seed %d for %s", seed, length)
	s := rig.Shared(t, rig.Options{Alone: true, Flags: []string{"--transcriber", "off"}})
	st := newStage(t, s)
	f := &fuzzer{stage: st, generator: newGenerator(seed), seen: map[string]map[int]int{}, broken: map[string]bool{}}
	f.seed(t)
	for end := time.Now().Add(length); time.Now().Before(end); {
		for _, o := range st.doc.operations {
			if !f.broken[o.ID] {
				f.one(t, o)
			}
		}
	}
	f.report(t)
}

// fuzzer sends generated requests and records the responses.
type fuzzer struct {
	*stage
	*generator
	seen map[string]map[int]int // responses by operation and status
	sent int

	broken map[string]bool // operations that failed: each is reported once
}

// seed passes existing identifiers to the generator.
func (f *fuzzer) seed(t *testing.T) {
	for _, values := range f.ids {
		for _, v := range values {
			f.learn([]byte(`"` + v + `"`))
		}
	}
}

// sparing names operations that would invalidate the fuzzer's own credentials or webhook, or wait for other servers.
var sparing = map[string]bool{"apikeys.delete": true, "apikeys.rotate": true, "users.invite": true,
	"webhooks.rotate_secret": true}

// slow names operations that are called less often, because speech synthesis and deliveries take long.
var slow = map[string]bool{"audio.create": true, "webhooks.test": true, "trunks.test": true}

// one sends one request for an operation.
func (f *fuzzer) one(t *testing.T, o operation) {
	t.Helper()
	if sparing[o.ID] || slow[o.ID] && !f.chance(30) {
		return
	}
	wrong := f.chance(3)
	target := o.at(f.parameters(o))
	if q := f.query(o, wrong && f.chance(2)).Encode(); q != "" {
		target += "?" + q
	}
	var body []byte
	if o.Body {
		body = f.body(o, wrong)
	}
	q, err := http.NewRequest(o.Method, "http://"+f.HTTP+prefix+target, bytes.NewReader(body))
	if err != nil {
		t.Fatalf("%s %q: %v", o.Method, target, err)
	}
	q.Header.Set("Authorization", "Bearer "+f.a.Key)
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	if f.chance(10) {
		q.Header.Set("Idempotency-Key", strconv.Itoa(f.IntN(50)))
	}
	if f.chance(10) {
		q.Header.Set(pick(f.generator, "If-Match", "If-None-Match", "If-Modified-Since", "If-Range", "Prefer", "Range", "Accept"),
			pick(f.generator, "*", `"x"`, "respond-async", "bytes=0-1", "bytes=999999999-", "text/csv", time.Now().UTC().Format(http.TimeFormat)))
	}
	r := send(t, q)
	f.sent++
	f.check(t, o, q, body, r)
	f.learn(r.Body)
}

// parameters fills a path: with an existing identifier, with one of another kind, or with nonsense.
func (f *fuzzer) parameters(o operation) map[string]string {
	values := maps.Clone(nowhere)
	own, _ := f.of(o)
	for _, name := range o.Parameters {
		switch f.IntN(6) {
		case 0:
			values[name] = url.PathEscape(pick(f.generator, f.known()...))
		case 1:
			values[name] = url.PathEscape(pick(f.generator, "x", "%", "a/b", "é", strings.Repeat("q", 300), " ", "+1 202", "0", "\x00x"))
		case 2, 3, 4:
			if v, ok := own[name]; ok && v != f.a.Org {
				values[name] = v
			}
		}
	}
	return values
}

// body makes the body of a request.
func (f *fuzzer) body(o operation, wrong bool) []byte {
	content := o.declared.RequestBody.Value.Content.Get("application/json")
	if content == nil || wrong && f.chance(8) {
		return []byte(pick(f.generator, ``, `{`, `[]`, `null`, `"x"`, `{"a":}`, "\x00", `{"a":1,"a":2}`, strings.Repeat("[", 5000)))
	}
	v := f.value("", content.Schema.Value, 0)
	if wrong {
		v = f.spoil(v)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return []byte("{}")
	}
	return b
}

// check checks a response against the description.
func (f *fuzzer) check(t *testing.T, o operation, q *http.Request, body []byte, r rig.Response) {
	t.Helper()
	if f.seen[o.ID] == nil {
		f.seen[o.ID] = map[int]int{}
	}
	f.seen[o.ID][r.Status]++
	sub := &watched{T: t}
	defer func() {
		if f.broken[o.ID] = sub.failed; sub.failed {
			t.Logf("request: %s %.500s\n%.600s\nheader %v", q.Method, q.URL.RequestURI(), body, q.Header)
		}
	}()
	f.hold(sub, o, q, body, r)
}

// hold does the work of check and reports failures to t.
func (f *fuzzer) hold(t *watched, o operation, q *http.Request, body []byte, r rig.Response) {
	checkProblem(t, o.ID, r)
	f.a.judge(t, q, r)
	if o.declared.Responses.Status(r.Status) == nil && r.Status != http.StatusNotFound {
		t.Errorf("%s: %d is not announced: %.300s", o.ID, r.Status, r.Body)
	}
	if r.Status == http.StatusNotImplemented && o.Rollout != "planned" && problemOf(r).Code != "not_enabled" {
		t.Errorf("%s: 501 though it is %s", o.ID, o.Rollout)
	}
	if r.Status < 300 {
		f.accepted(t, o, q, body)
	}
}

// watched records whether a check failed.
type watched struct {
	*testing.T
	failed bool
}

// Errorf records the failure too.
func (w *watched) Errorf(format string, args ...any) {
	w.Helper()
	w.failed = true
	w.T.Errorf(format, args...)
}

// accepted checks that the description allows a request that succeeded.
func (f *fuzzer) accepted(t *watched, o operation, q *http.Request, body []byte) {
	t.Helper()
	described := q.Clone(context.Background())
	described.Host, described.URL.Host, described.URL.Scheme = "", "", ""
	if content := o.declared.RequestBody; content != nil {
		body = leftOut(body, content.Value.Content.Get("application/json"))
	}
	described.Body = io.NopCloser(bytes.NewReader(body))
	route, values, err := f.doc.router.FindRoute(described)
	if err != nil || !o.Body || !strings.Contains(q.Header.Get("Content-Type"), "json") || strings.TrimSpace(string(body)) == "" {
		return
	}
	in := &openapi3filter.RequestValidationInput{Request: described, PathParams: values, Route: route,
		Options: &openapi3filter.Options{ExcludeRequestQueryParams: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc}}
	if err := openapi3filter.ValidateRequestBody(context.Background(), in, o.declared.RequestBody.Value); err != nil {
		t.Errorf("%s accepted what the description forbids: %v", o.ID, err)
	}
}

// leftOut returns a body without optional members that are null. The introduction of the description says that null
// is the same as absent.
func leftOut(body []byte, content *openapi3.MediaType) []byte {
	var v any
	if content == nil || json.Unmarshal(body, &v) != nil {
		return body
	}
	without(v, content.Schema.Value)
	b, err := json.Marshal(v)
	if err != nil {
		return body
	}
	return b
}

func without(v any, s *openapi3.Schema) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			described := s.Properties[name]
			switch {
			case described == nil:
			case member == nil && !slices.Contains(s.Required, name):
				delete(v, name)
			default:
				without(member, described.Value)
			}
		}
	case []any:
		if s.Items == nil {
			return
		}
		for _, item := range v {
			without(item, s.Items.Value)
		}
	}
}

// report logs the responses seen. It names operations that accepted no request, because the fuzzer tested little of
// them.
func (f *fuzzer) report(t *testing.T) {
	var never []string
	statuses := map[int]int{}
	for _, id := range sortedKeys(f.seen) {
		well := false
		for status, n := range f.seen[id] {
			statuses[status] += n
			well = well || status < 300
		}
		if !well {
			never = append(never, id)
		}
	}
	sort.Strings(never)
	t.Logf("%d requests to %d operations; answers by status %v; never accepted: %v", f.sent, len(f.seen), statuses, never)
	if f.sent > 2000 && len(never) > len(f.seen)/2 {
		t.Errorf("more than half of the operations were never answered well: the generator has lost its way")
	}
}
