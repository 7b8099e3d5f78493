package op

import (
	"fmt"
	"reflect"
	"strings"
)

// unstorable returns the texts of an input that contain U+0000, which PostgreSQL cannot store. JSON and URLs can
// contain it, but no name, number or ID does. The check makes both databases behave the same.
func unstorable(in any) []Violation {
	var wrong []Violation
	walkTexts(reflect.ValueOf(in), "", func(field, text string) {
		if strings.IndexByte(text, 0) >= 0 {
			wrong = append(wrong, Field(strings.TrimPrefix(field, "."), "invalid_value", noNUL))
		}
	})
	return wrong
}

const noNUL = "must not contain the character U+0000"

// storable refuses an input with unstorable texts.
func storable(in any) error {
	if wrong := unstorable(in); len(wrong) > 0 {
		return Invalid(wrong...)
	}
	return nil
}

// walkTexts visits every text of a value, including map keys.
func walkTexts(v reflect.Value, field string, visit func(field, text string)) {
	switch v.Kind() {
	case reflect.String:
		visit(field, v.String())
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			walkTexts(v.Elem(), field, visit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Tag.Get("query") == "" { // normalizeQuery checks queries
				walkTexts(v.Field(i), field+memberOf(f), visit)
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			walkTexts(v.Index(i), fmt.Sprintf("%s[%d]", field, i), visit)
		}
	case reflect.Map:
		for all := v.MapRange(); all.Next(); {
			walkTexts(all.Key(), field, visit)
			walkTexts(all.Value(), field+"."+fmt.Sprint(all.Key()), visit)
		}
	}
}

// memberOf returns the name of a field in a request. The body itself and the value of a Change have no name.
func memberOf(f reflect.StructField) string {
	if f.Anonymous || f.Name == "Body" && f.Tag.Get("json") == "" || f.Name == "V" {
		return ""
	}
	for _, key := range []string{"json", "path", "header"} {
		if name, _, _ := strings.Cut(f.Tag.Get(key), ","); name != "" {
			return "." + name
		}
	}
	return "." + f.Name
}
