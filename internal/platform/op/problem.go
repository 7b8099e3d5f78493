package op

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"sort"
	"strings"
	"unicode"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/strictjson"
)

// Problem is an error response of REST: RFC 9457 with a stable code.
type Problem struct {
	Type      string         `json:"type" doc:"Address of the page that explains the code"`
	Title     string         `json:"title"`
	Status    int            `json:"status"`
	Code      string         `json:"code" doc:"Stable code for programs"`
	Detail    string         `json:"detail,omitempty"`
	Errors    []Violation    `json:"errors,omitempty" doc:"Everything wrong with the request"`
	RequestID string         `json:"request_id"`
	Extra     map[string]any `json:"-"`
	header    http.Header
}

// Error implements error, for the library.
func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

// GetStatus returns the status to the library.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders returns additional headers, such as Retry-After.
func (p *Problem) GetHeaders() http.Header { return p.header }

// ContentType returns the media type of RFC 9457.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// MarshalJSON returns the members of the type, followed by the additional ones.
func (p *Problem) MarshalJSON() ([]byte, error) {
	type plain Problem
	b, err := json.Marshal((*plain)(p))
	if err != nil || len(p.Extra) == 0 {
		return b, err
	}
	names := make([]string, 0, len(p.Extra))
	for n := range p.Extra {
		names = append(names, n)
	}
	sort.Strings(names)
	out := bytes.NewBuffer(b[:len(b)-1])
	for _, n := range names {
		v, err := json.Marshal(p.Extra[n])
		if err != nil {
			return nil, err
		}
		out.WriteString(`,"` + n + `":`)
		out.Write(v)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// registered are problem types with a registered URI (draft-ietf-httpapi-ratelimit-headers).
var registered = map[string]string{
	"rate_limited": "https://iana.org/assignments/http-problem-types#quota-exceeded",
	"overloaded":   "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
}

// AsProblem returns the problem for an error. An unknown code becomes internal.
func AsProblem(ctx context.Context, e *Error) *Problem {
	c, known := codes[e.Code]
	if !known {
		c = codes["internal"]
		e = &Error{Code: "internal"}
	}
	p := &Problem{Type: "/errors/" + e.Code, Title: c.title, Status: c.status, Code: e.Code, Detail: e.Detail,
		Errors: e.Fields, RequestID: RequestID(ctx), Extra: e.Extra, header: e.Header}
	if t, ok := registered[e.Code]; ok {
		p.Type = t
	}
	return p
}

// Write responds with an error outside the pipeline, for example for an unknown path.
func Write(w http.ResponseWriter, r *http.Request, e *Error) {
	p := AsProblem(r.Context(), e)
	for name, values := range p.header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", "application/problem+json")
	b, err := json.Marshal(p)
	if err != nil {
		http.Error(w, p.Title, p.Status)
		return
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(b, '\n'))
}

// unreadBody is the library's message for a body that it could not read. It reports such a body as an error of the server.
const unreadBody = "cannot read request body"

// problemFrom converts the library's errors to a problem. The library reports 422 for everything, so the kinds are
// distinguished here. The sent value is dropped, because it may be a secret.
func problemFrom(status int, message string, errs []error, requestID string) *Problem {
	fields, code := violations(errs)
	var large *http.MaxBytesError
	switch {
	case status == http.StatusRequestEntityTooLarge || errors.As(errors.Join(errs...), &large):
		code = "payload_too_large"
	case status == http.StatusUnsupportedMediaType || strings.Contains(message, "unknown content type"):
		code = "unsupported_media_type"
	case status == http.StatusBadRequest && len(fields) == 0:
		code = "malformed_json"
	case message == unreadBody: // the client sent a malformed chunk, or less than it announced
		code, fields = "malformed_json", []Violation{{Field: "body", Code: "malformed", Message: "cannot be read"}}
	case status >= 500:
		code = "internal"
	}
	p := &Problem{Type: "/errors/" + code, Title: codes[code].title, Status: codes[code].status, Code: code,
		Errors: fields, RequestID: requestID}
	if len(fields) > 0 {
		p.Detail = strings.TrimPrefix(fields[0].Field+": "+fields[0].Message, ": ")
	} else if code != "internal" {
		p.Detail = message
	}
	return p
}

// violations returns the invalid fields, and the most severe code: unreadable, unknown, query, content.
func violations(errs []error) (fields []Violation, code string) {
	rank := map[string]int{"malformed_json": 4, "unknown_field": 3, "invalid_query": 2, "validation_failed": 1}
	code = "validation_failed"
	for _, err := range errs {
		if faults := faultsOf(err); len(faults) > 0 {
			fields, code = append(fields, Violations(faults)...), "malformed_json"
			continue
		}
		v, kind := violation(err)
		fields = append(fields, v)
		if rank[kind] > rank[code] {
			code = kind
		}
	}
	return fields, code
}

// faultsOf returns the faults of a body that strictFormat has refused.
func faultsOf(err error) []strictjson.Fault {
	var d huma.ErrorDetailer
	if !errors.As(err, &d) || !strings.HasSuffix(d.ErrorDetail().Message, ambiguousBody) {
		return nil
	}
	body, _ := d.ErrorDetail().Value.(string)
	return strictjson.Check(strictjson.WithoutMark([]byte(body)))
}

func violation(err error) (v Violation, kind string) {
	var d huma.ErrorDetailer
	if !errors.As(err, &d) {
		return Violation{Field: "body", Code: "malformed", Message: err.Error()}, "malformed_json"
	}
	detail := d.ErrorDetail()
	place, field, _ := strings.Cut(detail.Location, ".")
	if field == "" {
		field = place
	}
	v = Violation{Field: field, Code: "invalid", Message: detail.Message}
	switch {
	case strings.HasPrefix(detail.Message, "unexpected property"):
		v.Code = "unknown_field"
		return v, "unknown_field"
	case place == "body" && decoderError.MatchString(detail.Message):
		return wrongValue(detail.Message), "validation_failed"
	case place == "body" && unreadable(detail.Message):
		v.Code = "malformed"
		return v, "malformed_json"
	case strings.Contains(detail.Message, "required"):
		v = missing(v, place, field)
	}
	if place == "query" {
		return v, "invalid_query"
	}
	return v, "validation_failed"
}

// decoderError matches the decoder's error for a value that the schema allows and the type of the operation cannot hold.
var decoderError = regexp.MustCompile(`cannot unmarshal (\w+).* into Go (?:struct field (\S+)|value) of type (\S+)`)

// wrongValue returns the violation of a decoder's error. It names the member and the type as JSON does.
func wrongValue(message string) Violation {
	m := decoderError.FindStringSubmatch(message)
	field := memberPath(m[2])
	if field == "" {
		field = "body"
	}
	what := "an object"
	switch kind := m[3]; {
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		if what = "a whole number"; m[1] == "number" {
			what = "a whole number of at most 18 digits"
		}
	case strings.HasPrefix(kind, "float"):
		what = "a number"
	case kind == "string":
		what = "a text"
	case kind == "bool":
		what = "true or false"
	case strings.HasPrefix(kind, "["):
		what = "a list"
	}
	return Field(field, "invalid_type", "must be "+what)
}

// memberPath returns the path of a member without the names of Go types: the first name, and those of embedded structs. Members of the API
// begin with a small letter.
func memberPath(path string) string {
	_, path, _ = strings.Cut(path, ".")
	names := slices.DeleteFunc(strings.Split(path, "."), func(n string) bool { return n != "" && unicode.IsUpper(rune(n[0])) })
	return strings.Join(names, ".")
}

// missing sets the field to the missing member. The library reports the object that lacks it.
func missing(v Violation, place, field string) Violation {
	v.Code = "required"
	_, rest, _ := strings.Cut(v.Message, "expected required property ")
	name, _, found := strings.Cut(rest, " ")
	if !found {
		return v
	}
	v.Field, v.Message = name, "is required"
	if field != place {
		v.Field = field + "." + name
	}
	return v
}

// unreadable reports whether a message comes from the JSON decoder.
func unreadable(message string) bool {
	for _, sign := range []string{"invalid character", "unexpected end of JSON", "cannot unmarshal", "unexpected EOF"} {
		if strings.Contains(message, sign) {
			return true
		}
	}
	return false
}
