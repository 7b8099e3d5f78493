package op

import (
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// describeExamples adds an example to every request body, response and problem of an operation. They are generated
// from the schemas and therefore always match them.
func describeExamples(doc *huma.OpenAPI, h *huma.Operation, o Operation) {
	s := sampler{all: doc.Components.Schemas}
	if h.RequestBody != nil {
		for mediaType, content := range h.RequestBody.Content {
			switch {
			case content.Example != nil:
			case strings.HasSuffix(mediaType, "json"):
				content.Example = s.request(o.ID, content.Schema)
			case tables[o.ID] != "":
				content.Example = tables[o.ID]
			}
		}
	}
	for status, r := range h.Responses {
		if strings.HasPrefix(status, "2") {
			s.answers(r)
			continue
		}
		exemplifyProblems(doc, r, status)
	}
}

// answers adds an example to each response of success, except audio.
func (s sampler) answers(r *huma.Response) {
	for mediaType, content := range r.Content {
		switch {
		case content.Example != nil || len(content.Examples) > 0:
		case strings.HasSuffix(mediaType, "json"):
			content.Example = s.value(content.Schema, "", 0)
		case texts[mediaType] != "":
			content.Example = texts[mediaType]
		}
	}
}

// exemplifyProblems refers to the examples of the error codes of a response. Each example exists once, in the
// components.
func exemplifyProblems(doc *huma.OpenAPI, r *huma.Response, status string) {
	content := r.Content["application/problem+json"]
	if content == nil {
		return
	}
	names, _ := r.Extensions["x-codes"].([]string)
	if len(names) == 0 {
		names = codesOf(status)
	}
	described := *content
	described.Examples = map[string]*huma.Example{}
	for _, name := range names {
		described.Examples[name] = &huma.Example{Ref: "#/components/examples/" + name}
		if doc.Components.Examples[name] == nil {
			doc.Components.Examples[name] = exampleOf(name, codes[name])
		}
	}
	r.Content = map[string]*huma.MediaType{"application/problem+json": &described}
}

// codesOf returns the error codes of a status for operations that declare none.
func codesOf(status string) []string {
	if status == strconv.Itoa(http.StatusUnprocessableEntity) {
		return []string{"validation_failed"}
	}
	var all []string
	for name, c := range codes {
		if strconv.Itoa(c.status) == status {
			all = append(all, name)
		}
	}
	return all
}

// exampleOf returns the example problem of a code with its additional members.
func exampleOf(name string, c code) *huma.Example {
	p := &Problem{Type: "/errors/" + name, Title: c.title, Status: c.status, Code: name, Detail: c.help, RequestID: "req_" + ulid}
	switch name {
	case "validation_failed":
		p.Errors = []Violation{{"to", "required", "is required"}}
	case "unknown_field":
		p.Errors = []Violation{{"form", "unknown_field", "unexpected property"}}
	case "invalid_query":
		p.Errors = []Violation{{"limit", "invalid", "expected number <= 200"}}
	case "insufficient_scope":
		p.Extra = map[string]any{"required_scopes": []string{"calls:write"}}
	case "invalid_state":
		p.Extra = map[string]any{"current_status": "completed", "allowed_actions": []string{}}
	case "in_use":
		p.Extra = map[string]any{"used_by": []string{"queue que_" + ulid}}
	}
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // fails only for a wrong literal above
	}
	return &huma.Example{Summary: c.title, Value: json.RawMessage(body)}
}

// sampler generates realistic values that are valid for a schema.
type sampler struct {
	all huma.Registry
	own string // schema that contains the value
}

// deepest limits recursive schemas.
const deepest = 6

// request returns an example request body: a fixed one, or the required members.
func (s sampler) request(operation string, schema *huma.Schema) any {
	if body, ok := requestExamples[operation]; ok {
		return body
	}
	if schema.Ref != "" {
		schema = s.all.SchemaFromRef(schema.Ref)
	}
	return s.members(schema, func(name string) bool { return slices.Contains(schema.Required, name) }, 0)
}

// value returns an example of a schema for a member name.
func (s sampler) value(schema *huma.Schema, name string, depth int) any {
	if schema.Ref != "" {
		s.own = schema.Ref[strings.LastIndex(schema.Ref, "/")+1:]
		if prefixes[name] != "" {
			s.own += " " + name
		}
		schema = s.all.SchemaFromRef(schema.Ref)
	}
	switch {
	case len(schema.AnyOf) > 0:
		return s.value(schema.AnyOf[0], name, depth)
	case len(schema.OneOf) > 0:
		return s.value(schema.OneOf[0], name, depth)
	case len(schema.Enum) > 0:
		return s.enumValue(schema, name)
	case schema.Nullable && slices.Contains(usuallyNull, name):
		return nil
	case len(schema.Examples) > 0:
		return schema.Examples[0]
	}
	switch schema.Type {
	case huma.TypeObject:
		return s.object(schema, depth)
	case huma.TypeArray:
		if depth >= deepest || schema.Items == nil {
			return []any{}
		}
		return []any{s.value(schema.Items, singular(name), depth+1)}
	case huma.TypeInteger, huma.TypeNumber:
		return number(schema, name)
	case huma.TypeBoolean:
		return schema.Default != nil && schema.Default == true || slices.Contains(usuallyTrue, name)
	case huma.TypeString:
		return s.text(schema, name)
	}
	return word(name)
}

// object returns an example with all members, and one member for open objects.
func (s sampler) object(schema *huma.Schema, depth int) any {
	if depth >= deepest {
		return s.members(schema, func(name string) bool { return slices.Contains(schema.Required, name) }, depth)
	}
	if extra, ok := schema.AdditionalProperties.(*huma.Schema); ok && len(schema.Properties) == 0 {
		return map[string]any{"reference": s.value(extra, "reference", depth+1)}
	}
	return s.members(schema, func(string) bool { return true }, depth)
}

func (s sampler) members(schema *huma.Schema, wanted func(string) bool, depth int) map[string]any {
	all := map[string]any{}
	for name, member := range schema.Properties {
		if wanted(name) && !member.WriteOnly {
			all[name] = s.value(member, name, depth+1)
		}
	}
	return all
}

// enumValue returns the most common value of an enumeration.
func (s sampler) enumValue(schema *huma.Schema, name string) any {
	for _, usual := range []any{schema.Default, vocabulary[s.own+"."+name], vocabulary[name]} {
		if usual != nil && slices.Contains(schema.Enum, usual) {
			return usual
		}
	}
	return schema.Enum[0]
}

// number returns a number in the schema's range.
func number(schema *huma.Schema, name string) any {
	v, ok := numbers[name]
	if !ok && schema.Default != nil {
		return schema.Default
	}
	if !ok {
		v = typicalNumber(name)
	}
	if schema.Minimum != nil {
		v = max(v, *schema.Minimum)
	}
	if schema.Maximum != nil {
		v = min(v, *schema.Maximum)
	}
	if schema.Type == huma.TypeInteger {
		return int64(math.Round(v))
	}
	return v
}

// typicalNumber returns a number for the suffix of a name.
func typicalNumber(name string) float64 {
	switch {
	case strings.HasSuffix(name, "_rate"):
		return 0.94
	case strings.HasSuffix(name, "_seconds"):
		return 20
	case strings.HasSuffix(name, "_ms"):
		return 120
	case strings.HasSuffix(name, "_per_minute"):
		return 600
	case strings.HasPrefix(name, "max_"):
		return 30
	}
	return 1
}

// text returns a time, an identifier, or a word for a member name.
func (s sampler) text(schema *huma.Schema, name string) any {
	switch {
	case schema.Format == "date-time":
		return moment(name)
	case name == "id":
		return s.identifier()
	case name == "name":
		return fit(schema, s.name())
	case vocabulary[s.own+"."+name] != nil:
		return fit(schema, vocabulary[s.own+"."+name])
	case vocabulary[name] != nil && schema.Pattern == "":
		return fit(schema, vocabulary[name])
	case schema.Default != nil:
		return schema.Default
	case strings.HasSuffix(name, "_id") && prefixes[strings.TrimSuffix(name, "_id")] != "":
		return prefixes[strings.TrimSuffix(name, "_id")] + "_" + ulid
	case strings.HasSuffix(name, "_url"):
		return "https://soniq.example/" + strings.TrimSuffix(name, "_url")
	case strings.HasSuffix(name, "_at"):
		return moment(name)
	}
	return fit(schema, word(name))
}

// identifier returns an ID for the sampler's schema.
func (s sampler) identifier() string {
	last, best := -1, ""
	lower := strings.ToLower(s.own)
	for kind := range prefixes {
		end := strings.LastIndex(lower, kind) + len(kind)
		if strings.Contains(lower, kind) && (end > last || end == last && len(kind) > len(best)) {
			last, best = end, kind
		}
	}
	if best == "" {
		return "obj_" + ulid
	}
	return prefixes[best] + "_" + ulid
}

// name returns the name of a person, a company or a thing.
func (s sampler) name() string {
	lower := strings.ToLower(s.own)
	for _, n := range []struct{ part, name string }{{"queue", "Support"}, {"credential", "billing"}, {"key", "billing"}, {"device", "Desk"},
		{"trunk", "Carrier"}, {"webhook", "CRM"}, {"tag", "invoice"}, {"audio", "Welcome"}, {"home", "Harbor Dental"},
		{"org", "Harbor Dental"},
		{"user", "Ada Lovelace"}, {"person", "Ada Lovelace"}, {"agent", "Ada Lovelace"}, {"author", "Ada Lovelace"},
		{"contact", "Ada Lovelace"}, {"caller", "Ada Lovelace"}, {"partner", "Harbor Dental"}} {
		if strings.Contains(lower, n.part) {
			return n.name
		}
	}
	return "Support"
}

// fit truncates a text to the schema's maximum length.
func fit(schema *huma.Schema, v any) any {
	text, ok := v.(string)
	if ok && schema.MaxLength != nil && len(text) > *schema.MaxLength {
		return text[:*schema.MaxLength]
	}
	return v
}

func word(name string) string { return strings.ReplaceAll(name, "_", " ") }

// singular returns the singular of a list's name.
func singular(name string) string {
	if strings.HasSuffix(name, "ies") {
		return strings.TrimSuffix(name, "ies") + "y"
	}
	return strings.TrimSuffix(name, "s")
}
