package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
)

// compileSchema returns the catalogue's schema of a kind, compiled by a third-party validator.
func compileSchema(t *testing.T, kind string, schema any) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("https://soniq.example/"+kind, schema); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("https://soniq.example/" + kind)
	if err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	return s
}

// payloadData returns the decoded data of a payload as it is sent.
func payloadData(t *testing.T, p event.Payload) map[string]any {
	t.Helper()
	body, err := event.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return v.(map[string]any)["data"].(map[string]any)
}

// Every kind is described. Its sample and its minimal payload are valid, and a payload without a member is not.
func TestCatalogue_AllKindsDescribed(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t), nil)
	a := h.get("/webhooks/events")
	if a.Text("header_prefix") != "x-service" {
		t.Errorf("prefix %q", a.Text("header_prefix"))
	}
	for i, k := range event.Kinds() {
		at := fmt.Sprintf("data.%d.", i)
		if a.Text(at+"event") != string(k) || a.Text(at+"sample.event") != string(k) || a.Text(at+"description") == "" {
			t.Errorf("%s: %v", k, a.At(fmt.Sprintf("data.%d", i)))
		}
		raw, _ := json.Marshal(a.At(at + "schema"))
		schema, _ := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		s := compileSchema(t, string(k), schema)
		sample, _ := sampleOf(string(k))
		whole := payloadData(t, sample)
		if err := s.Validate(whole); err != nil {
			t.Errorf("sample of %s: %v", k, err)
		}
		if n := len(a.At(at + "schema.properties").(map[string]any)); n != len(whole) {
			t.Errorf("%s: schema has %d members, sample %d", k, n, len(whole))
		}
		for name := range whole {
			lacking := payloadData(t, sample)
			delete(lacking, name)
			if s.Validate(lacking) == nil {
				t.Errorf("%s without %s is valid", k, name)
			}
		}
	}
}

// Optional members are null, and lists are empty, never null.
func TestCatalogue_MinimalEventsValid(t *testing.T) {
	t.Parallel()
	for _, p := range event.Payloads {
		raw, err := schemaOf(p)
		if err != nil {
			t.Fatal(err)
		}
		schema, _ := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		least := payloadData(t, p)
		for name, v := range least {
			if v == nil && strings.HasSuffix(name, "_at") && (name != "answered_at" || p.Kind() == "call.answered") {
				least[name] = "2026-01-31T09:30:00Z" // a zero time, which no real event has
			}
		}
		if err := compileSchema(t, string(p.Kind()), schema).Validate(least); err != nil {
			t.Errorf("%s: %v", p.Kind(), err)
		}
	}
}
