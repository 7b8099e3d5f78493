// Package published contains the published API description. Its test refuses changes that break clients.
package published

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
)

// TestPublished_NothingBreaks compares the description of this tree with the published copy.
func TestPublished_NothingBreaks(t *testing.T) {
	t.Parallel()
	if found := breaking(read(t, "openapi.json"), read(t, "../testdata/openapi.json"), time.Now()); len(found) > 0 {
		t.Errorf("%d changes break clients; where that is meant, make publish and tell them:\n%s", len(found), strings.Join(found, "\n"))
	}
}

func read(t *testing.T, path string) *openapi3.T {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return load(t, string(b))
}

func load(t *testing.T, text string) *openapi3.T {
	t.Helper()
	d, err := openapi3.NewLoader().LoadFromData([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// sampleAPI is a description with one of everything that can break.
const sampleAPI = `{"openapi": "3.1.0", "info": {"title": "t", "version": "1"},
"components": {"securitySchemes": {"apiKey": {"type": "http", "scheme": "bearer"}}, "schemas": {
 "Fresh": {"type": "object", "additionalProperties": false, "required": ["name"], "properties": {
  "name": {"type": "string", "maxLength": 80, "minLength": 1}, "email": {"type": ["string", "null"]},
  "kind": {"type": "string", "enum": ["desk", "soft"], "default": "desk"}, "code": {"type": "string", "pattern": "^[a-z]+$"},
  "rings": {"type": "integer", "minimum": 1, "maximum": 9}, "tags": {"type": "array", "maxItems": 5, "items": {"type": "string"}},
  "target": {"anyOf": [{"type": "string"}, {"type": "integer"}]}, "metadata": {"type": "object", "additionalProperties": {"type": "string"}}}},
 "Phone": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}, "note": {"type": "string"},
  "status": {"type": "string", "enum": ["on", "off"]}, "at": {"type": "string", "format": "date-time"}, "count": {"type": "integer"},
  "part_of": {"$ref": "#/components/schemas/Phone"}, "heard": {"type": "array", "items": {"type": "number"}}}}}},
"paths": {"/phones": {
 "get": {"operationId": "phones.list", "x-scope": "phones:read | phones:admin", "parameters": [
   {"name": "limit", "in": "query", "schema": {"type": "integer", "maximum": 200}}],
  "responses": {"200": {"description": "OK", "headers": {"ETag": {"schema": {"type": "string"}}}, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Phone"}},
   "text/csv": {"schema": {"type": "string"}}}}}},
 "post": {"operationId": "phones.create", "x-scope": "any", "requestBody": {"required": false, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Fresh"}}}},
  "responses": {"201": {"description": "Created"}, "409": {"description": "Conflict", "x-codes": ["in_use"]}}},
 "delete": {"operationId": "phones.clear", "x-scope": "none", "deprecated": true, "x-sunset": "2026-06-01", "responses": {"204": {"description": "Gone"}}}}},
"webhooks": {"phone.on": {"post": {"operationId": "webhook.phone.on", "parameters": [{"name": "webhook-id", "in": "header", "required": true, "schema": {"type": "string"}}],
 "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Phone"}}}}, "responses": {"200": {"description": "OK"}}}}}}`

// beforeSunset and afterSunset are times before and after the sunset of phones.clear.
var beforeSunset, afterSunset = time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)

func TestBreaking_EveryKindFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ what, old, fresh, found string }{
		{"a path", `"/phones"`, `"/telephones"`, "GET /phones: the operation is gone"},
		{"an operation", `"post": {"operationId": "phones.create"`, `"put": {"operationId": "phones.create"`, "POST /phones: the operation is gone"},
		{"an operation before its sunset", `"delete": {`, `"patch": {`, "DELETE /phones: the operation is gone"},
		{"its name", `"phones.list"`, `"phones.all"`, "operationId phones.list became phones.all"},
		{"a status", `"201":`, `"202":`, "POST /phones answer 201: is gone"},
		{"a code", `["in_use"]`, `["used"]`, "answer 409: code in_use is gone"},
		{"a header of an answer", `"ETag"`, `"Etag2"`, "answer 200: header ETag is gone"},
		{"a media type", `"text/csv"`, `"text/plain"`, "answer 200: text/csv is gone"},
		{"a member of an answer", `"note": {`, `"notes": {`, "note: is gone"},
		{"a member of an answer that was always there", `"required": ["id"], `, ``, "id: is not always there any more"},
		{"a type in an answer", `"count": {"type": "integer"}`, `"count": {"type": "string"}`, "count: type [integer] became [string]"},
		{"null in an answer", `"count": {"type": "integer"}`, `"count": {"type": ["integer", "null"]}`, "count: type"},
		{"a type in a list of an answer", `"items": {"type": "number"}`, `"items": {"type": "string"}`, "heard items: type"},
		{"a format in an answer", `"format": "date-time"`, `"format": "date"`, `format "date-time" became "date"`},
		{"an enum of an answer given up", `, "enum": ["on", "off"]`, ``, "may be anything"},
		{"a new required member", `"required": ["name"]`, `"required": ["name", "email"]`, "email: is required now"},
		{"a member of a request", `"email"`, `"mail"`, "email: is gone"},
		{"a member of a request that may not be null", `["string", "null"]`, `"string"`, "email: type"},
		{"a value of an enum", `["desk", "soft"]`, `["desk"]`, "kind: soft is not taken any more"},
		{"an enum where there was none", `"pattern": "^[a-z]+$"`, `"enum": ["a"]`, "code: must be one of [a] now"},
		{"a default", `"default": "desk"`, `"default": "soft"`, "the default desk became soft"},
		{"a pattern", `^[a-z]+$`, `^[a-f]+$`, "code: pattern"},
		{"maxLength", `"maxLength": 80`, `"maxLength": 79`, "maxLength is 79 now, it was 80"},
		{"minLength", `"minLength": 1`, `"minLength": 2`, "minLength is 2 now, it was 1"},
		{"maximum", `"maximum": 9`, `"maximum": 8`, "maximum is 8 now"},
		{"minimum", `"minimum": 1`, `"minimum": 2`, "minimum is 2 now"},
		{"maxItems", `"maxItems": 5`, `"maxItems": 4`, "maxItems is 4 now"},
		{"a variant", `{"anyOf": [{"type": "string"}, {"type": "integer"}]}`, `{"type": "string"}`, "target: variant 2"},
		{"what other members are", `"additionalProperties": {"type": "string"}`, `"additionalProperties": {"type": "integer"}`, "metadata other members: type"},
		{"a body that is required", `"required": false`, `"required": true`, "request: a body is required now"},
		{"a media type of requests", `"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Fresh"`, `"content": {"text/x": {"schema": {"$ref": "#/components/schemas/Fresh"`, "request: application/json is gone"},
		{"a parameter", `"name": "limit"`, `"name": "most"`, "query parameter limit: is gone"},
		{"a required parameter", `{"name": "limit",`, `{"name": "new", "in": "query", "required": true, "schema": {"type": "string"}}, {"name": "limit",`, "parameter new: is new and required"},
		{"a parameter that is required", `"name": "limit", `, `"name": "limit", "required": true, `, "limit: is required now"},
		{"a limit of a parameter", `"maximum": 200`, `"maximum": 100`, "limit: maximum is 100 now, it was 200"},
		{"a scope", `phones:read | phones:admin`, `phones:admin`, `who holds "phones:read" is not let in any more`},
		{"two scopes for one", `"phones:read | phones:admin"`, `"phones:read + calls:read | phones:admin"`, `who holds "phones:read"`},
		{"a scope where any credential would do", `"x-scope": "any"`, `"x-scope": "phones:admin"`, "is not let in any more"},
		{"a credential", `"x-scope": "none"`, `"x-scope": "any"`, "needs a credential now"},
		{"an environment", `"operationId": "phones.create"`, `"operationId": "phones.create", "x-environment": "sandbox"`, "is only in sandbox now"},
		{"the security scheme", `"scheme": "bearer"`, `"scheme": "basic"`, "security scheme apiKey"},
		{"an event", `"phone.on": {`, `"phone.off": {`, "webhook phone.on: the event is gone"},
		{"a header of events", `"name": "webhook-id", "in": "header", "required": true`, `"name": "webhook-id", "in": "header"`, "header webhook-id is gone or not always there"},
		{"a member of an event", `"status": {`, `"state": {`, "status: is gone"}, // reported at the first occurrence of its schema
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			found := strings.Join(breaking(load(t, sampleAPI), load(t, changed(t, c.old, c.fresh)), beforeSunset), "\n")
			if !strings.Contains(found, c.found) {
				t.Errorf("not found: %q, only %q", c.found, found)
			}
		})
	}
}

func TestBreaking_AdditionsAllowed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ what, old, fresh string }{
		{"nothing", `"/phones"`, `"/phones"`},
		{"a member of an answer", `"note": {`, `"more": {"type": "string"}, "note": {`},
		{"a value that answers may have", `["on", "off"]`, `["on", "off", "away"]`},
		{"a value that requests may have", `["desk", "soft"]`, `["desk", "soft", "web"]`},
		{"an optional member", `"email": {`, `"more": {"type": "string"}, "email": {`},
		{"an optional parameter", `{"name": "limit",`, `{"name": "new", "in": "query", "schema": {"type": "string"}}, {"name": "limit",`},
		{"wider limits", `"maxLength": 80, "minLength": 1`, `"maxLength": 90`},
		{"a member no longer required", `"required": ["name"], `, ``},
		{"a member always there", `"required": ["id"]`, `"required": ["id", "note"]`},
		{"a further scope", `phones:read | phones:admin`, `phones:read | phones:admin | all`},
		{"no credential", `"x-scope": "any"`, `"x-scope": "none"`},
		{"a further variant", `{"type": "integer"}]`, `{"type": "integer"}, {"type": "boolean"}]`},
		{"a further code", `["in_use"]`, `["in_use", "conflict"]`},
		{"a further event", `"phone.on": {`, `"phone.off": {"post": {"operationId": "off", "responses": {"200": {"description": "OK"}}}}, "phone.on": {`},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			if found := breaking(load(t, sampleAPI), load(t, changed(t, c.old, c.fresh)), beforeSunset); len(found) > 0 {
				t.Errorf("refused: %q", found)
			}
		})
	}
	if found := breaking(load(t, sampleAPI), load(t, changed(t, `"delete": {`, `"patch": {`)), afterSunset); len(found) > 0 {
		t.Errorf("an operation cannot go after its sunset: %q", found)
	}
}

// changed returns the small description with a text replaced once.
func changed(t *testing.T, old, fresh string) string {
	t.Helper()
	if strings.Count(sampleAPI, old) == 0 {
		t.Fatalf("the small description has no %s", old)
	}
	return strings.Replace(sampleAPI, old, fresh, 1)
}
