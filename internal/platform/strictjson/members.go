package strictjson

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Members returns the members of a document that the type of the value does not have. Names compare exactly, unlike
// those of encoding/json. Parts with a decoder of their own are not visited. A document that is not JSON has none.
func Members(document []byte, of any) []Fault {
	var v any
	if json.Unmarshal(document, &v) != nil {
		return nil
	}
	w := walker{}
	w.visit(v, reflect.TypeOf(of))
	return w.faults
}

// Variants returns the members that differ from a known one only in case. Other unknown members are allowed.
func Variants(document []byte, of any) []Fault {
	return slices.DeleteFunc(Members(document, of), func(f Fault) bool { return !f.Variant })
}

type walker struct {
	path   []string
	faults []Fault
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func (w *walker) visit(v any, t reflect.Type) {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || reflect.PointerTo(t).Implements(unmarshaler) {
		return
	}
	switch x := v.(type) {
	case map[string]any:
		w.members(x, t)
	case []any:
		if k := t.Kind(); k == reflect.Slice || k == reflect.Array {
			for i, one := range x {
				w.inside(indexed(i), one, t.Elem())
			}
		}
	}
}

func (w *walker) inside(step string, v any, t reflect.Type) {
	w.path = append(w.path, step)
	w.visit(v, t)
	w.path = w.path[:len(w.path)-1]
}

func (w *walker) members(x map[string]any, t reflect.Type) {
	var known map[string]reflect.Type
	if t.Kind() == reflect.Struct {
		known = Names(t)
	}
	for _, name := range sorted(x) {
		if t.Kind() == reflect.Map {
			w.inside("."+name, x[name], t.Elem())
		} else if inner, ok := known[name]; ok {
			w.inside("."+name, x[name], inner)
		} else if known != nil {
			w.unknown(name, known)
		}
	}
}

func (w *walker) unknown(name string, known map[string]reflect.Type) {
	if len(w.faults) >= maxFaults {
		return
	}
	names := sorted(known)
	variant := slices.ContainsFunc(names, func(k string) bool { return strings.EqualFold(k, name) })
	w.faults = append(w.faults, Fault{Field: fieldName(append(slices.Clip(w.path), "."+name)), Code: UnknownMember,
		Message: "unexpected property; known are " + strings.Join(names, ", "), Variant: variant})
}

// Names returns the names and types of the members that encoding/json reads into a struct.
func Names(t reflect.Type) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || f.Tag.Get("json") == "-" || f.Anonymous && name == "" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		if _, shadowed := all[name]; !shadowed || len(f.Index) == 1 {
			all[name] = f.Type
		}
	}
	return all
}

func indexed(i int) string { return "[" + strconv.Itoa(i) + "]" }

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
