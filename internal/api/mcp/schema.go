package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"soniq/internal/platform/op"
)

// JSON schemas of tools, derived from the OpenAPI document of the operations.

// schema is a decoded JSON schema (2020-12), or any other JSON object.
type schema = map[string]any

// document is the part of an OpenAPI document that tools are derived from.
type document struct {
	Paths      map[string]map[string]json.RawMessage `json:"paths"`
	Components struct {
		Schemas map[string]schema `json:"schemas"`
	} `json:"components"`
}

// operationDoc is an operation of a document.
type operationDoc struct {
	Parameters []struct {
		Name        string `json:"name"`
		In          string `json:"in"`
		Description string `json:"description"`
		Schema      schema `json:"schema"`
	} `json:"parameters"`
	RequestBody struct {
		Content map[string]media `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Content map[string]media `json:"content"`
	} `json:"responses"`
}

type media struct {
	Schema schema `json:"schema"`
}

func parseDocument(raw []byte) (*document, error) {
	var d document
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("read description of operations: %w", err)
	}
	return &d, nil
}

// operation returns the description of an operation.
func (d *document) operation(o op.Operation) (operationDoc, error) {
	var all operationDoc
	raw, ok := d.Paths[op.Prefix+o.Path][strings.ToLower(o.Method)]
	if !ok {
		return all, fmt.Errorf("operation %s is not described", o.ID)
	}
	return all, json.Unmarshal(raw, &all)
}

// result returns the schema of an operation's success response.
func (d *document) result(o op.Operation) (schema, error) {
	x, err := d.operation(o)
	if err != nil {
		return nil, err
	}
	s := x.Responses[fmt.Sprint(o.SuccessCode)].Content["application/json"].Schema
	if s == nil {
		return nil, fmt.Errorf("operation %s has no JSON result", o.ID)
	}
	return d.resolve(s), nil
}

// input returns the schema of a parameter or a member of the body, without references, because not every client
// resolves them.
func (d *document) input(o op.Operation, a argument) (schema, error) {
	x, err := d.operation(o)
	if err != nil {
		return nil, err
	}
	if a.position == inBody {
		body := d.resolve(x.RequestBody.Content["application/json"].Schema)
		for kind, m := range x.RequestBody.Content {
			if body == nil && strings.HasSuffix(kind, "json") {
				body = d.resolve(m.Schema)
			}
		}
		members, _ := body["properties"].(schema)
		member, ok := members[a.target].(schema)
		if !ok {
			return nil, fmt.Errorf("operation %s has no member %s", o.ID, a.target)
		}
		return d.inline(member, 0), nil
	}
	for _, p := range x.Parameters {
		if p.Name == a.target && p.In == a.position {
			s := d.inline(p.Schema, 0)
			if p.Description != "" {
				s["description"] = p.Description
			}
			return s, nil
		}
	}
	return nil, fmt.Errorf("operation %s has no %s parameter %s", o.ID, a.position, a.target)
}

const reference = "#/components/schemas/"

// resolve follows a reference.
func (d *document) resolve(s schema) schema {
	if name, ok := s["$ref"].(string); ok {
		return d.Components.Schemas[strings.TrimPrefix(name, reference)]
	}
	return s
}

// maxDepth bounds recursive schemas.
const maxDepth = 12

// inline copies an input schema with its references resolved. A member that may be null in a change stays nullable; a
// list does not.
func (d *document) inline(s schema, depth int) schema {
	if depth > maxDepth {
		return schema{}
	}
	out := maps.Clone(d.resolve(s))
	for _, name := range []string{"format", "examples"} {
		if name != "format" || out["type"] != "string" {
			delete(out, name)
		}
	}
	if kinds, ok := out["type"].([]any); ok && slices.Contains(kinds, any("array")) {
		out["type"] = "array"
	}
	for name, v := range out {
		switch v := v.(type) {
		case schema:
			if name == "properties" {
				out[name] = d.inlineMembers(v, depth)
			} else {
				out[name] = d.inline(v, depth+1)
			}
		case []any:
			out[name] = d.inlineEach(v, depth)
		}
	}
	return out
}

func (d *document) inlineMembers(all schema, depth int) schema {
	out := schema{}
	for name, v := range all {
		if s, ok := v.(schema); ok {
			out[name] = d.inline(s, depth+1)
		}
	}
	return out
}

func (d *document) inlineEach(all []any, depth int) []any {
	out := make([]any, len(all))
	for i, v := range all {
		if s, ok := v.(schema); ok {
			v = d.inline(s, depth+1)
		}
		out[i] = v
	}
	return out
}

// output returns the schema of a result, with the referenced schemas below $defs.
func (d *document) output(s schema) schema {
	defs := schema{}
	out, _ := d.moveRefs(s, defs).(schema)
	if len(defs) > 0 {
		out["$defs"] = defs
	}
	return out
}

// moveRefs copies a schema and moves its references to defs. Formats, examples, extensions and descriptions are omitted,
// because clients need only the structure of results.
func (d *document) moveRefs(v any, defs schema) any {
	switch v := v.(type) {
	case schema:
		if name, ok := v["$ref"].(string); ok {
			name = strings.TrimPrefix(name, reference)
			if _, known := defs[name]; !known {
				defs[name] = true // prevents endless recursion
				defs[name] = d.moveRefs(d.Components.Schemas[name], defs)
			}
			return schema{"$ref": "#/$defs/" + name}
		}
		v = d.withoutSecrets(v)
		out := schema{}
		for name, member := range v {
			if _, member := member.(schema); !member && (name == "format" || name == "examples" || strings.HasPrefix(name, "x-")) {
				continue
			}
			if _, text := member.(string); text && name == "description" {
				continue
			}
			out[name] = d.moveRefs(member, defs)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = d.moveRefs(v[i], defs)
		}
		return out
	}
	return v
}

// withEncodedSchemas returns a tool with its schemas as JSON, so that they are not encoded again for each list.
func withEncodedSchemas(t *sdk.Tool) (*sdk.Tool, error) {
	out := *t
	for _, s := range []*any{&out.InputSchema, &out.OutputSchema} {
		b, err := json.Marshal(*s)
		if err != nil {
			return nil, fmt.Errorf("write schema: %w", err)
		}
		*s = json.RawMessage(b)
	}
	return &out, nil
}
