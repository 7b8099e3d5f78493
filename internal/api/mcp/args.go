package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"soniq/internal/platform/op"
	"soniq/internal/platform/strictjson"
)

// Position of an argument in the request to the operation.
const (
	inPath   = "path"
	inQuery  = "query"
	inBody   = "body"
	inHeader = "header"
	inNone   = "" // used by the tool itself
)

// argument is an argument of a tool.
type argument struct {
	name, position, target string
	operation              string // the operation that defines its schema; "" for the tool's own operation
	doc                    string
	required               bool
	schema                 schema // in place of the operation's
}

func queryArgs(names ...string) []argument { return argsIn(inQuery, names) }
func bodyArgs(names ...string) []argument  { return argsIn(inBody, names) }

func argsIn(in string, names []string) []argument {
	out := make([]argument, len(names))
	for i, n := range names {
		name, required := strings.CutSuffix(n, "!")
		out[i] = argument{name: name, position: in, target: name, required: required}
	}
	return out
}

func pathArg(name, as, doc string) []argument {
	return []argument{{name: name, position: inPath, target: as, doc: doc, required: true}}
}

func ownArg(name string, s schema) []argument { return []argument{{name: name, schema: s}} }

// limitArg returns the argument for the length of a list, up to 50.
func limitArg(in string) []argument {
	return []argument{{name: "limit", position: in, target: "limit", schema: schema{"type": "integer", "minimum": 1, "maximum": maxRows,
		"default": defaultRows, "description": "How many at most"}}}
}

func cursorArg() []argument {
	return []argument{{name: "cursor", position: inQuery, target: "cursor", doc: "next_cursor of the page before"}}
}

// idempotencyKeyArg returns the argument for the idempotency key of a change.
func idempotencyKeyArg() []argument {
	return []argument{{name: "idempotency_key", position: inHeader, target: "Idempotency-Key",
		schema: schema{"type": "string", "maxLength": 255,
			"description": "A value of your own: a repeated call with it has no second effect"}}}
}

func confirmArg() []argument {
	return ownArg("confirm", schema{"type": "boolean",
		"description": "true once the person has agreed; needed where this client cannot ask them"})
}

// Lengths of lists: default and maximum.
const (
	defaultRows = 20
	maxRows     = 50
)

func joinArgs(parts ...[]argument) []argument { return slices.Concat(parts...) }

// parseArgs decodes the arguments and returns the violations that the operation does not check.
func (c *toolCall) parseArgs() *toolError {
	c.args = schema{}
	if raw := strictjson.PlainIntegers(c.input.arguments); len(raw) > 0 && string(raw) != "null" {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if err := d.Decode(&c.args); err != nil {
			return newToolError(op.Invalid(op.Field("arguments", "malformed", "must be a JSON object")))
		}
	}
	if faults := strictjson.Check(c.input.arguments); len(faults) > 0 {
		return newToolError(op.Invalid(op.Violations(faults)...))
	}
	maps.DeleteFunc(c.args, func(_ string, v any) bool { return v == nil && !c.t.acceptsNull() })
	if wrong := c.t.violations(c.args); len(wrong) > 0 {
		return newToolError(op.Invalid(wrong...))
	}
	return nil
}

// acceptsNull reports whether null is a value: it clears a member of a record.
func (t *tool) acceptsNull() bool { return t.name == "update_contact" || t.name == "update_user" }

// violations returns everything wrong with arguments that is found without the operation.
func (t *tool) violations(args schema) []op.Violation {
	var wrong []op.Violation
	known := map[string]bool{}
	for _, a := range t.args {
		known[a.name] = true
		v, given := args[a.name]
		if a.required && (!given || v == nil || v == "") {
			wrong = append(wrong, op.Field(a.name, "required", "is required"))
		}
		if given && a.name == "limit" && !isWithin(v, maxRows) {
			wrong = append(wrong, op.Field(a.name, "invalid", fmt.Sprintf("must be 1 to %d", maxRows)))
		}
		if given && a.schema["type"] == "boolean" {
			if _, ok := v.(bool); !ok {
				wrong = append(wrong, op.Field(a.name, "invalid", "must be true or false"))
			}
		}
	}
	for name := range maps.Keys(args) {
		if !known[name] {
			wrong = append(wrong, op.Field(name, "unknown_field", "is no argument of "+t.name))
		}
	}
	slices.SortFunc(wrong, func(a, b op.Violation) int { return strings.Compare(a.Field, b.Field) })
	return wrong
}

func isWithin(v any, most int64) bool {
	n, ok := v.(json.Number)
	i, err := n.Int64()
	return ok && err == nil && i >= 1 && i <= most
}

// operationRequest holds the parameters of a request to an operation.
type operationRequest struct {
	path   map[string]string
	query  url.Values
	header http.Header
	body   schema
}

// buildRequest puts the arguments at their positions in the request.
func (c *toolCall) buildRequest() operationRequest {
	r := operationRequest{path: map[string]string{}, query: url.Values{}, header: http.Header{}}
	for _, a := range c.t.args {
		v, given := c.args[a.name]
		if !given {
			if a.name != "limit" {
				continue
			}
			v = json.Number(fmt.Sprint(defaultRows))
		}
		r.put(a, v)
	}
	return r
}

func (r *operationRequest) put(a argument, v any) {
	switch a.position {
	case inPath:
		r.path[a.target] = text(v)
	case inHeader:
		r.header.Set(a.target, text(v))
	case inBody:
		if r.body == nil {
			r.body = schema{}
		}
		r.body[a.target] = v
	case inQuery:
		if many, ok := v.([]any); ok {
			for _, one := range many {
				r.query.Add(a.target, text(one))
			}
			return
		}
		r.query.Set(a.target, text(v))
	}
}

// recordID returns the id of the record that the arguments name, or that was created, for the audit log.
func (c *toolCall) recordID() string {
	for _, a := range c.t.args {
		if a.position == inPath || strings.HasSuffix(a.name, "_id") && a.required {
			if s, ok := c.args[a.name].(string); ok {
				return s
			}
		}
	}
	return c.createdID
}
