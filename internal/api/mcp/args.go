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
type arg struct {
	name, in, as string
	of           string // the operation that defines its schema; "" for the tool's own operation
	doc          string
	required     bool
	schema       schema // in place of the operation's
}

func query(names ...string) []arg { return all(inQuery, names) }
func body(names ...string) []arg  { return all(inBody, names) }

func all(in string, names []string) []arg {
	out := make([]arg, len(names))
	for i, n := range names {
		name, required := strings.CutSuffix(n, "!")
		out[i] = arg{name: name, in: in, as: name, required: required}
	}
	return out
}

func path(name, as, doc string) []arg {
	return []arg{{name: name, in: inPath, as: as, doc: doc, required: true}}
}

func own(name string, s schema) []arg { return []arg{{name: name, schema: s}} }

// limitArg returns the argument for the length of a list, up to 50.
func limited(in string) []arg {
	return []arg{{name: "limit", in: in, as: "limit", schema: schema{"type": "integer", "minimum": 1, "maximum": mostRows, "default": usualRows,
		"description": "How many at most"}}}
}

func cursor() []arg {
	return []arg{{name: "cursor", in: inQuery, as: "cursor", doc: "next_cursor of the page before"}}
}

// idempotencyKeyArg returns the argument for the idempotency key of a change.
func keyed() []arg {
	return []arg{{name: "idempotency_key", in: inHeader, as: "Idempotency-Key", schema: schema{"type": "string", "maxLength": 255,
		"description": "A value of your own: a repeated call with it has no second effect"}}}
}

func confirming() []arg {
	return own("confirm", schema{"type": "boolean", "description": "true once the person has agreed; needed where this client cannot ask them"})
}

// Lengths of lists: default and maximum.
const (
	usualRows = 20
	mostRows  = 50
)

func join(parts ...[]arg) []arg { return slices.Concat(parts...) }

// parseArgs decodes the arguments and returns the violations that the operation does not check.
func (c *call) read() *fault {
	c.args = schema{}
	if raw := c.asked.arguments; len(raw) > 0 && string(raw) != "null" {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if err := d.Decode(&c.args); err != nil {
			return failed(op.Invalid(op.Field("arguments", "malformed", "must be a JSON object")))
		}
	}
	maps.DeleteFunc(c.args, func(_ string, v any) bool { return v == nil && !c.t.nullable() })
	if wrong := c.t.wrong(c.args); len(wrong) > 0 {
		return failed(op.Invalid(wrong...))
	}
	return nil
}

// acceptsNull reports whether null is a value: it clears a member of a record.
func (t *tool) nullable() bool { return t.name == "update_contact" || t.name == "update_user" }

// violations returns everything wrong with arguments that is found without the operation.
func (t *tool) wrong(args schema) []op.Violation {
	var wrong []op.Violation
	known := map[string]bool{}
	for _, a := range t.args {
		known[a.name] = true
		v, given := args[a.name]
		if a.required && (!given || v == nil || v == "") {
			wrong = append(wrong, op.Field(a.name, "required", "is required"))
		}
		if given && a.name == "limit" && !within(v, mostRows) {
			wrong = append(wrong, op.Field(a.name, "invalid", fmt.Sprintf("must be 1 to %d", mostRows)))
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

func within(v any, most int64) bool {
	n, ok := v.(json.Number)
	i, err := n.Int64()
	return ok && err == nil && i >= 1 && i <= most
}

// operationRequest holds the parameters of a request to an operation.
type request struct {
	path   map[string]string
	query  url.Values
	header http.Header
	body   schema
}

// buildRequest puts the arguments at their positions in the request.
func (c *call) wanted() request {
	r := request{path: map[string]string{}, query: url.Values{}, header: http.Header{}}
	for _, a := range c.t.args {
		v, given := c.args[a.name]
		if !given {
			if a.name != "limit" {
				continue
			}
			v = json.Number(fmt.Sprint(usualRows))
		}
		r.put(a, v)
	}
	return r
}

func (r *request) put(a arg, v any) {
	switch a.in {
	case inPath:
		r.path[a.as] = text(v)
	case inHeader:
		r.header.Set(a.as, text(v))
	case inBody:
		if r.body == nil {
			r.body = schema{}
		}
		r.body[a.as] = v
	case inQuery:
		if many, ok := v.([]any); ok {
			for _, one := range many {
				r.query.Add(a.as, text(one))
			}
			return
		}
		r.query.Set(a.as, text(v))
	}
}

// recordID returns the id of the record that the arguments name, or that was created, for the audit log.
func (c *call) subject() string {
	for _, a := range c.t.args {
		if a.in == inPath || strings.HasSuffix(a.name, "_id") && a.required {
			if s, ok := c.args[a.name].(string); ok {
				return s
			}
		}
	}
	return c.made
}
