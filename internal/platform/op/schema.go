package op

import (
	"path"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/db"
)

// registry returns a registry with our schema names.
func registry(prefix string) huma.Registry {
	r := huma.NewMapRegistry(prefix, schemaName)
	r.RegisterTypeAlias(reflect.TypeFor[db.Time](), reflect.TypeFor[time.Time]())
	return r
}

// SchemaOf returns the JSON Schema of a response type. Referenced types are in defs by name, and referred to as
// #/$defs/name.
func SchemaOf(t reflect.Type) (s *huma.Schema, defs map[string]*huma.Schema) {
	r := registry("#/$defs/")
	s = r.SchemaFromRef(r.Schema(t, true, "").Ref)
	correct(r, "#/$defs/", nil)
	defs = r.Map()
	delete(defs, schemaName(t, ""))
	return s, defs
}

// schemaName returns the name of a type in the OpenAPI document: package and type, because packages share type names.
// The device of a user's record is UserDevice, a device is Device.
func schemaName(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Name() == "" || t.PkgPath() == "" {
		return huma.DefaultSchemaNamer(t, hint)
	}
	base, arguments, _ := strings.Cut(strings.TrimSuffix(t.Name(), "]"), "[")
	name := qualified(t.PkgPath(), base)
	for argument := range strings.SplitSeq(arguments, ",") {
		if argument == "" {
			continue
		}
		if strings.HasPrefix(argument, "[]") {
			name += "List"
		}
		argument = strings.TrimLeft(argument, "[]*")
		dot := strings.LastIndex(argument, ".")
		name += qualified(argument[:max(dot, 0)], argument[dot+1:])
	}
	return name
}

// published maps a package to the prefix of its schemas, if the published contract knows the package by an older name.
var published = map[string]string{"prompt": "audio", "trunk": "carrier", "smppserver": "esme", "smscarrier": "smsc",
	"eventstream": "stream", "callback": "call", "cdr": "call", "recording": "call", "adapter": "crm"}

// renamed maps names of schemas that generators of clients would make twice: CallRecording has url, Call has
// recording_url, and both would become CallRecordingUrl.
var renamed = map[string]string{"CallRecording": "CallRecordingFile"}

// qualified puts the package name before the type name, unless the type name already starts with it.
func qualified(pkg, name string) string {
	full := unambiguous(pkg, name)
	if other, ok := renamed[full]; ok {
		return other
	}
	return full
}

func unambiguous(pkg, name string) string {
	room := path.Base(pkg)
	if prefix, ok := published[room]; ok {
		room = prefix
	}
	if pkg == "" || room == "op" || strings.HasPrefix(strings.ToLower(name), room) {
		return title(name)
	}
	return title(room) + title(name)
}

func title(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// Members is an object whose members depend on its owner. Any of them may be null.
type Members map[string]any

// Schema returns the schema of an object with any members.
func (Members) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// MarshalJSON returns an empty object for nil.
func (m Members) MarshalJSON() ([]byte, error) {
	if m == nil {
		return []byte("{}"), nil
	}
	return encode(map[string]any(m))
}
