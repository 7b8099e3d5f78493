// Package wiring checks at start that a constructor got every dependency.
package wiring

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Check panics if an exported field of an interface type in the struct config is nil or has a nil pointer, also in a struct that it
// embeds. The latter is a service that is built later. A field may be nil if it has the tag `wiring:"optional"` or optional names it.
// Constructors call Check first, so that a missing dependency ends the program at start and not at the first call.
func Check(config any, optional ...string) {
	v := reflect.ValueOf(config)
	for _, name := range optional {
		if _, ok := v.Type().FieldByName(name); !ok {
			panic(fmt.Sprintf("%T has no field %s", config, name))
		}
	}
	var missing []string
	for _, f := range reflect.VisibleFields(v.Type()) {
		if !f.IsExported() || f.Tag.Get("wiring") == "optional" || slices.Contains(optional, f.Name) {
			continue
		}
		if f.Type.Kind() == reflect.Interface && isNil(v.FieldByIndex(f.Index)) {
			missing = append(missing, f.Name)
		}
	}
	if len(missing) > 0 {
		panic(fmt.Sprintf("%T: %s not set", config, strings.Join(missing, ", ")))
	}
}

// isNil reports whether an interface has no value, or a nil pointer.
func isNil(v reflect.Value) bool {
	return v.IsNil() || v.Elem().Kind() == reflect.Pointer && v.Elem().IsNil()
}
