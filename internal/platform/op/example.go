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

// describeExamples gives every body of an operation an example: what it asks for, what it answers, and each problem it may
// answer. They follow from the schemas, so that none can be out of date.
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

// answers adds an example to each content of an answer of success; sound has none.
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

// exemplifyProblems refers to the example of each code an answer may carry; it is among the components once.
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
		doc.Components.Examples[name] = exampleOf(name, codes[name])
	}
	r.Content = map[string]*huma.MediaType{"application/problem+json": &described}
}

// codesOf are those an answer of a status may carry where the declaration names none.
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

// exampleOf is the problem of a code, with what else its code brings along.
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
		panic(err) // our own values
	}
	return &huma.Example{Summary: c.title, Value: json.RawMessage(body)}
}

// A sampler makes values that are valid by a schema, and look like the real ones.
type sampler struct {
	all huma.Registry
	own string // name of the schema the value is a member of
}

// deepest bounds schemas that contain themselves.
const deepest = 6

// request is the body of an operation: the one written down for it, or its required members.
func (s sampler) request(operation string, schema *huma.Schema) any {
	if body, ok := asked[operation]; ok {
		return body
	}
	if schema.Ref != "" {
		schema = s.all.SchemaFromRef(schema.Ref)
	}
	return s.members(schema, func(name string) bool { return slices.Contains(schema.Required, name) }, 0)
}

// value is an example of a schema for a member of a name.
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
		return s.one(schema, name)
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
		return within(schema, name)
	case huma.TypeBoolean:
		return schema.Default != nil && schema.Default == true || slices.Contains(usuallyTrue, name)
	case huma.TypeString:
		return s.text(schema, name)
	}
	return word(name)
}

// object is an example with all members, those of open objects too.
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

// one picks the member of an enumeration that is most usual.
func (s sampler) one(schema *huma.Schema, name string) any {
	for _, usual := range []any{schema.Default, vocabulary[s.own+"."+name], vocabulary[name]} {
		if usual != nil && slices.Contains(schema.Enum, usual) {
			return usual
		}
	}
	return schema.Enum[0]
}

// within is a number of the schema's range.
func within(schema *huma.Schema, name string) any {
	v, ok := numbers[name]
	if !ok && schema.Default != nil {
		return schema.Default
	}
	if !ok {
		v = usual(name)
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

// usual is a number whose name says only what kind of number it is.
func usual(name string) float64 {
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

// text is a string: a time, an identifier, or a word that members of this name hold.
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

// identifier is the id of a record of the schema the sampler is in.
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

// name is that of a person, a company or a thing.
func (s sampler) name() string {
	lower := strings.ToLower(s.own)
	for _, n := range []struct{ part, name string }{{"queue", "Support"}, {"credential", "billing"}, {"key", "billing"}, {"device", "Desk"},
		{"trunk", "Carrier"}, {"webhook", "CRM"}, {"tag", "invoice"}, {"audio", "Welcome"}, {"home", "Harbor Dental"}, {"org", "Harbor Dental"},
		{"user", "Ada Lovelace"}, {"person", "Ada Lovelace"}, {"agent", "Ada Lovelace"}, {"author", "Ada Lovelace"},
		{"contact", "Ada Lovelace"}, {"caller", "Ada Lovelace"}, {"partner", "Harbor Dental"}} {
		if strings.Contains(lower, n.part) {
			return n.name
		}
	}
	return "Support"
}

// fit shortens a text to the schema's bound.
func fit(schema *huma.Schema, v any) any {
	text, ok := v.(string)
	if ok && schema.MaxLength != nil && len(text) > *schema.MaxLength {
		return text[:*schema.MaxLength]
	}
	return v
}

func word(name string) string { return strings.ReplaceAll(name, "_", " ") }

// singular is the name of one of the members of a list.
func singular(name string) string {
	if strings.HasSuffix(name, "ies") {
		return strings.TrimSuffix(name, "ies") + "y"
	}
	return strings.TrimSuffix(name, "s")
}
