package op

import (
	"path"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/db"
)

// registry collects schemas under our names.
func registry(prefix string) huma.Registry {
	r := huma.NewMapRegistry(prefix, schemaName)
	r.RegisterTypeAlias(reflect.TypeFor[db.Time](), reflect.TypeFor[time.Time]())
	return r
}

// SchemaOf describes a type as answers hold it, in JSON Schema that stands for itself: what it refers to is in defs, by name, and
// referred to as #/$defs/name.
func SchemaOf(t reflect.Type) (s *huma.Schema, defs map[string]*huma.Schema) {
	r := registry("#/$defs/")
	s = r.SchemaFromRef(r.Schema(t, true, "").Ref)
	correct(r, "#/$defs/", nil)
	defs = r.Map()
	delete(defs, schemaName(t, ""))
	return s, defs
}

// schemaName names a type in the OpenAPI document by its package and itself, because packages may use the same words: the
// device of a user's record is UserDevice, a device is Device.
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
var published = map[string]string{"prompt": "audio", "trunk": "carrier", "smppserver": "esme", "smscarrier": "smsc", "eventstream": "stream"}

// qualified puts the package before the type's own name, unless that begins with it.
func qualified(pkg, name string) string {
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

// Members is an object whose members depend on what it belongs to; any of them may be null.
type Members map[string]any

// Schema describes it as an object with members of any kind.
func (Members) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// MarshalJSON writes nil as an object without members.
func (m Members) MarshalJSON() ([]byte, error) {
	if m == nil {
		return []byte("{}"), nil
	}
	return encode(map[string]any(m))
}
