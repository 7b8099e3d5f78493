package op

import (
	"fmt"
	"reflect"
	"strings"
)

// unstorable lists the texts of an input that hold the character U+0000, which PostgreSQL cannot keep. JSON and addresses can carry it, no
// name, number or id has it, and both databases answer the same.
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

// walkTexts visits every text of a value, names of members of maps included.
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
			if f := v.Type().Field(i); f.IsExported() && f.Tag.Get("query") == "" { // tidy reads queries
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

// memberOf is how a field is called in a request; the body itself, and what lies in a Change, have no name of their own.
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
