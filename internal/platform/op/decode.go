package op

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/strictjson"
)

// ambiguousBody is the decoder's error for a body that decoders read in different ways. The library adds the body to it,
// from which violations lists the faults.
const ambiguousBody = "ambiguous JSON"

// strictFormat decodes bodies. The library decodes each body twice: first without a type, for its schema, and then into
// the type of the operation. The schema compares names exactly (installProblemBodies), and no name occurs twice, so
// both decoders read the same.
func strictFormat() huma.Format {
	f := huma.DefaultJSONFormat
	plain := f.Unmarshal
	f.Unmarshal = func(body []byte, v any) error {
		body = strictjson.WithoutMark(body)
		if _, untyped := v.(*any); untyped && len(strictjson.Check(body)) > 0 {
			return errors.New(ambiguousBody)
		}
		return plain(strictjson.PlainIntegers(body), v)
	}
	return f
}

// Violations returns the violations of faults.
func Violations(faults []strictjson.Fault) []Violation {
	all := make([]Violation, len(faults))
	for i, f := range faults {
		all[i] = Field(f.Field, f.Code, f.Message)
	}
	return all
}

func wrongBody(code string, wrong []Violation) *Error {
	return &Error{Code: code, Detail: wrong[0].Field + ": " + wrong[0].Message, Fields: wrong}
}

// DecodeStrict decodes the JSON object of a body that an operation reads itself. It refuses what bodies with a schema
// are refused for: texts that are not Unicode, repeated members, unknown members. Names compare exactly.
func DecodeStrict(body []byte, to any) error {
	body = strictjson.WithoutMark(body)
	if !json.Valid(body) {
		return Fail("malformed_json", "the body is no JSON")
	}
	if faults := strictjson.Check(body); len(faults) > 0 {
		return wrongBody("malformed_json", Violations(faults))
	}
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		return Invalid(Field("body", "invalid_type", "must be an object"))
	}
	if faults := strictjson.Members(body, to); len(faults) > 0 {
		return wrongBody("unknown_field", Violations(faults))
	}
	if err := json.Unmarshal(strictjson.PlainIntegers(body), to); err != nil {
		return Invalid(wrongType("", err))
	}
	return nil
}

// DecodeSettings decodes a member "settings" of a body whose members depend on another member. It returns all unknown
// members, or a member of the wrong type.
func DecodeSettings(raw json.RawMessage, to any) (wrong []Violation) {
	for _, f := range append(strictjson.Check(raw), strictjson.Members(raw, to)...) {
		if f.Code == strictjson.UnknownMember {
			_, known, _ := strings.Cut(f.Message, "; ")
			wrong = append(wrong, Field("settings", f.Code, "no such setting: "+f.Field+"; "+known))
			continue
		}
		wrong = append(wrong, Field("settings."+f.Field, f.Code, f.Message))
	}
	if len(wrong) > 0 {
		return wrong
	}
	if err := json.Unmarshal(strictjson.PlainIntegers(raw), to); err != nil {
		return []Violation{wrongType("settings", err)}
	}
	return nil
}

// wrongType returns the violation of a decoder's error. It names the type as JSON does.
func wrongType(in string, err error) Violation {
	var kind *json.UnmarshalTypeError
	if !errors.As(err, &kind) || kind.Field == "" {
		if in == "" {
			in = "body"
		}
		return Field(in, "invalid_type", "must be an object")
	}
	return Field(strings.TrimPrefix(in+"."+kind.Field, "."), "invalid_type", "must be "+typeName(kind.Type))
}

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Struct, reflect.Map, reflect.Interface:
		return "an object"
	}
	return "a whole number"
}

// checkCharset refuses a body in another character encoding than UTF-8 (RFC 8259 §8.1).
func checkCharset(contentType string) *Error {
	_, params, err := mime.ParseMediaType(contentType)
	switch strings.ToLower(params["charset"]) {
	case "", "utf-8", "utf8", "us-ascii", "ascii":
		return nil
	}
	if err != nil {
		return nil // the library refuses it
	}
	return Fail("unsupported_media_type", fmt.Sprintf("charset %.40q is not supported; send UTF-8", params["charset"]))
}

// CheckEncoding refuses a compressed body (RFC 9110 §8.4): its length says nothing about the memory that it would need.
func CheckEncoding(h http.Header) *Error {
	coding := strings.TrimSpace(h.Get("Content-Encoding"))
	if coding == "" || strings.EqualFold(coding, "identity") {
		return nil
	}
	e := Fail("unsupported_media_type", fmt.Sprintf("Content-Encoding %.40q is not supported; send the body as it is", coding))
	e.Header = http.Header{"Accept-Encoding": {"identity"}} // RFC 9110 §15.5.16
	return e
}

// checkPath refuses a path whose values cannot be stored or compared.
func checkPath(path string) *Error {
	if utf8.ValidString(path) && strings.IndexByte(path, 0) < 0 {
		return nil
	}
	return wrongQuery(Field("path", "invalid_value", noNUL+", and must be UTF-8"))
}

// undecodable returns the error for a text of a form that is not UTF-8 or contains U+0000; nil for any other text.
func undecodable(field, text string) error {
	if utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 {
		return nil
	}
	return wrongBody("malformed_json", []Violation{Field(field, strictjson.InvalidUTF8, "must be valid UTF-8 without U+0000")})
}
