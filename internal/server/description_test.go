package server

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"soniq/internal/api/rest"
	"soniq/internal/platform/op"
)

// TestOpenAPI_EveryOperationDescribed checks that every operation has examples that are valid by their schemas, and that
// every parameter and group is described.
func TestOpenAPI_EveryOperationDescribed(t *testing.T) {
	if raceDetector {
		t.Skip("one goroutine alone: runs without the race detector, in another part of the suite")
	}
	model, err := openapi3.NewLoader().LoadFromData(describe(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := model.Validate(context.Background(), openapi3.EnableExamplesValidation()); err != nil {
		t.Errorf("an example is not valid: %v", err)
	}
	for _, tag := range model.Tags {
		if tag.Description == "" {
			t.Errorf("nothing says what %s are", tag.Name)
		}
	}
	for path, item := range model.Paths.Map() {
		for method, o := range item.Operations() {
			explained(t, method+" "+path, o)
		}
	}
}

// TestLLMsTxt_Complete checks that llms.txt and llms-full.txt have every operation with its scope, every event
// and every error code.
func TestLLMsTxt_Complete(t *testing.T) {
	s := newHTTPServer(t)
	short, full := read(t, s, "/llms.txt"), read(t, s, "/llms-full.txt")
	if !strings.HasPrefix(short, "# soniq\n\n> ") || len(short) > 60_000 || len(full) < 2*len(short) {
		t.Errorf("llms.txt has %d bytes and begins %.40q, llms-full.txt has %d", len(short), short, len(full))
	}
	for _, o := range s.Operations() {
		line := "`" + o.Method + " " + op.Prefix + o.Path + "` (" + o.ID + "): " + o.Summary
		if !strings.Contains(short, line) || !strings.Contains(full, "\n### "+o.ID+"\n") {
			t.Errorf("%s is missing", o.ID)
		}
		if !o.Need.IsPublic() && !strings.Contains(short, line+". Scope: "+o.Need.String()) {
			t.Errorf("%s without its scope", o.ID)
		}
	}
	for _, word := range append(op.Codes(), "call.ended", "webhook-signature", "Authorization: Bearer", "Idempotency-Key") {
		if !strings.Contains(short, word) || !strings.Contains(full, word) {
			t.Errorf("%s is missing", word)
		}
	}
}

func read(t *testing.T, s *rest.Server, path string) string {
	t.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	if w.Code != 200 || w.Header().Get("Content-Type") != "text/markdown; charset=utf-8" {
		t.Fatalf("%s: %d %s", path, w.Code, w.Header().Get("Content-Type"))
	}
	return w.Body.String()
}

func explained(t *testing.T, name string, o *openapi3.Operation) {
	t.Helper()
	if o.Summary == "" || o.Description == "" || o.Extensions["x-scope"] == nil || o.Extensions["x-rollout"] == nil {
		t.Errorf("%s: lacks summary, description, x-scope or x-rollout", name)
	}
	for _, p := range o.Parameters {
		if p.Value.Description == "" {
			t.Errorf("%s: nothing says what %s is", name, p.Value.Name)
		}
	}
	if o.RequestBody != nil {
		exemplified(t, name+" asks", o.RequestBody.Value.Content)
	}
	for status, r := range o.Responses.Map() {
		exemplified(t, name+" answers "+status, r.Value.Content)
	}
}

// exemplified fails if a text body has no example or an invalid one.
func exemplified(t *testing.T, name string, content openapi3.Content) {
	t.Helper()
	for mediaType, c := range content {
		if strings.HasPrefix(mediaType, "audio/") || strings.HasPrefix(mediaType, "application/vnd.") || strings.HasPrefix(mediaType, "multipart/") {
			continue
		}
		if c.Example == nil && len(c.Examples) == 0 {
			t.Errorf("%s %s without an example", name, mediaType)
		}
		if c.Example != nil && strings.HasSuffix(mediaType, "json") {
			if err := c.Schema.Value.VisitJSON(c.Example, openapi3.MultiErrors(), openapi3.EnableJSONSchema2020()); err != nil {
				t.Errorf("%s: the example is not valid: %v", name, err)
			}
		}
	}
}
