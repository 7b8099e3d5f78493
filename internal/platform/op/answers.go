package op

import (
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/db"
)

// alternative is one response of an operation that writes its own responses.
type alternative struct {
	status    int
	mediaType string // empty: no body
	body      reflect.Type
}

// Answers declares a response of an operation that writes its own (NewStream): a status, and the media type of its
// body, empty for none. body is a value of the JSON type; nil for other media types.
func (o Operation) Answers(status int, mediaType string, body any) Operation {
	o.answers = append(slices.Clip(o.answers), alternative{status, mediaType, reflect.TypeOf(body)})
	return o
}

// AnswersFile declares the responses of an operation that responds with FileStream: the file in one of the media types, a part of it, none
// because it has not changed since If-Modified-Since, and the problem of a range that it does not have.
func (o Operation) AnswersFile(mediaTypes ...string) Operation {
	for _, t := range mediaTypes {
		o = o.Answers(http.StatusOK, t, nil).Answers(http.StatusPartialContent, t, nil)
	}
	return o.Answers(http.StatusNotModified, "", nil).
		Answers(http.StatusRequestedRangeNotSatisfiable, "application/problem+json", Problem{})
}

// describeAccepted adds the response 202 to an operation. Its body is that of success.
func describeAccepted(doc *huma.OpenAPI, o Operation) {
	item := doc.Paths[Prefix+o.Path]
	for _, x := range []*huma.Operation{item.Post, item.Put, item.Patch} {
		if x != nil && x.OperationID == o.ID {
			accepted := *x.Responses[strconv.Itoa(o.SuccessCode)]
			accepted.Description = http.StatusText(http.StatusAccepted)
			x.Responses[strconv.Itoa(http.StatusAccepted)] = &accepted
		}
	}
}

// responses describes the declared responses.
func (o Operation) responses(schemas huma.Registry) map[string]*huma.Response {
	all := map[string]*huma.Response{}
	for _, a := range o.answers {
		status := strconv.Itoa(a.status)
		if all[status] == nil {
			all[status] = &huma.Response{Description: http.StatusText(a.status), Content: map[string]*huma.MediaType{}}
		}
		if a.mediaType == "" {
			continue
		}
		s := &huma.Schema{Type: huma.TypeString}
		if a.body != nil {
			s = schemas.Schema(a.body, true, "")
		}
		all[status].Content[a.mediaType] = &huma.MediaType{Schema: s}
	}
	return all
}

// describeAnswers corrects the library's schemas of responses: members that may be null (the library handles plain
// values only; here pointers to times and records follow), future additional members of records, and the additional
// members of problems.
func describeAnswers(doc *huma.OpenAPI) {
	correct(doc.Components.Schemas, "#/components/schemas/", requested(doc))
}

func correct(schemas huma.Registry, prefix string, asked map[string]bool) {
	for name, s := range schemas.Map() {
		ref := prefix + name
		t := schemas.TypeFromRef(ref)
		if t == nil || asked[ref] {
			continue
		}
		nullableMembers(s, t)
		if s.AdditionalProperties == false {
			s.AdditionalProperties = nil
		}
		if t == reflect.TypeFor[Problem]() {
			problemMembers(s)
		}
	}
}

// problemMembers describes the additional members of problems by code.
func problemMembers(s *huma.Schema) {
	list := func(doc string) *huma.Schema {
		return &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString}, Description: doc}
	}
	word := func(doc string) *huma.Schema { return &huma.Schema{Type: huma.TypeString, Description: doc} }
	for name, member := range map[string]*huma.Schema{
		"required_scopes":   list("insufficient_scope: the scopes the credential lacks"),
		"current_status":    word("invalid_state: the state the thing is in"),
		"allowed_actions":   list("invalid_state: what is possible in this state"),
		"used_by":           list("in_use: what still refers to the thing"),
		"reason":            word("Why, for programs: of recording_not_found, carrier_error and errors about destinations and speech"),
		"limit":             word("plan_limit, concurrency_limit, rate_limited: the limit that is reached"),
		"allowed":           {Type: huma.TypeInteger, Description: "plan_limit, concurrency_limit: how many the limit allows"},
		"used":              {Type: huma.TypeNumber, Description: "plan_limit: how many there are"},
		"confirm_at":        word("reauthentication_required: the path of the operation that confirms who acts"),
		"max_age_seconds":   {Type: huma.TypeInteger, Description: "reauthentication_required: how long a confirmation counts"},
		"user_id":           word("already_exists: the user who has it"),
		"violated-policies": list("rate_limited: the policies of RateLimit-Policy that the request did not fit into"),
		"rollout":           word("not_enabled: how far the operation is"),
		"lookup_ms":         {Type: huma.TypeInteger, Description: "contact_not_found: how long it was looked for, in milliseconds"},
		"complete":          {Type: huma.TypeBoolean, Description: "contact_not_found: whether every source answered in time"},
		"sources": {Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true},
			Description: "contact_not_found: who was asked, and what came of it"},
	} {
		s.Properties[name] = member
	}
}

var timeType = reflect.TypeFor[db.Time]()

// SecretMark is the extension of schemas of secrets: passwords, keys and links that work without a credential. A struct declares one with
// the tag secret:"true". The tool server leaves them out of its results.
const SecretMark = "x-secret"

func markSecret(member *huma.Schema) {
	if member.Extensions == nil {
		member.Extensions = map[string]any{}
	}
	member.Extensions[SecretMark] = true
}

func nullableMembers(s *huma.Schema, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			nullableMembers(s, f.Type)
			continue
		}
		member := s.Properties[name]
		if member != nil && f.Tag.Get("secret") == "true" {
			markSecret(member)
		}
		if member == nil || f.Type.Kind() != reflect.Pointer || strings.Contains(options, "omitempty") {
			continue
		}
		switch {
		case f.Type.Elem() == timeType:
			member.Nullable = true
		case member.Ref != "":
			s.Properties[name] = &huma.Schema{Description: member.Description,
				AnyOf: []*huma.Schema{{Ref: member.Ref}, {Type: "null"}}}
		}
	}
}

// requested returns the schemas that validate requests. They stay as the library created them.
func requested(doc *huma.OpenAPI) map[string]bool {
	seen := map[string]bool{}
	for _, item := range doc.Paths {
		for _, o := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if o == nil || o.RequestBody == nil {
				continue
			}
			for _, content := range o.RequestBody.Content {
				markReachable(doc.Components.Schemas, content.Schema, seen)
			}
		}
	}
	return seen
}

// markReachable marks all schemas that s refers to.
func markReachable(all huma.Registry, s *huma.Schema, seen map[string]bool) {
	if s == nil {
		return
	}
	if s.Ref != "" && !seen[s.Ref] {
		seen[s.Ref] = true
		markReachable(all, all.SchemaFromRef(s.Ref), seen)
	}
	markReachable(all, s.Items, seen)
	for _, member := range s.Properties {
		markReachable(all, member, seen)
	}
	if extra, ok := s.AdditionalProperties.(*huma.Schema); ok {
		markReachable(all, extra, seen)
	}
}
