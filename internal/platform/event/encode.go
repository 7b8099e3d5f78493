package event

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Encode returns the body of an event exactly as ECMAScript's JSON.stringify would after a parse, so that a receiver
// can verify the signature over either: no white space, fixed key order, minimal escaping.
func Encode(p Payload) ([]byte, error) {
	return Canonical(struct {
		Event Kind    `json:"event"`
		Data  Payload `json:"data"`
	}{p.Kind(), whole(p)})
}

// whole returns the payload with empty lists instead of nil ones, because lists are never null.
func whole(p Payload) Payload {
	v := reflect.ValueOf(p)
	if v.Kind() != reflect.Struct {
		return p
	}
	var changed reflect.Value
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Kind() != reflect.Slice || !f.IsNil() {
			continue
		}
		if !changed.IsValid() {
			changed = reflect.New(v.Type()).Elem()
			changed.Set(v)
		}
		changed.Field(i).Set(reflect.MakeSlice(f.Type(), 0, 0))
	}
	if !changed.IsValid() {
		return p
	}
	return changed.Interface().(Payload)
}

// Canonical encodes any value in the form of Encode.
func Canonical(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return raw(bytes.TrimRight(b.Bytes(), "\n")), nil
}

// escapes are characters that encoding/json writes as \u and JSON.stringify does not: the line separators, and the
// replacement character for invalid UTF-8.
var escapes = []struct{ escaped, plain string }{
	{`\u2028`, "\u2028"}, {`\u2029`, "\u2029"}, {`\ufffd`, "\ufffd"},
}

// raw replaces these escapes by the characters, and minus zero by 0. It skips escaped backslashes, so that text that
// only looks like an escape is unchanged.
func raw(b []byte) []byte {
	if !bytes.Contains(b, []byte(`\u`)) && !bytes.Contains(b, []byte("-0")) {
		return b
	}
	out := make([]byte, 0, len(b))
	quoted := false
	for i := 0; i < len(b); {
		plain, n := b[i:i+1], 1
		switch {
		case b[i] == '"':
			quoted = !quoted
		case quoted && b[i] == '\\':
			plain, n = unescape(b[i:])
		case !quoted && minusZero(b[i:]):
			plain = nil
		}
		out = append(out, plain...)
		i += n
	}
	return out
}

func unescape(b []byte) (plain []byte, n int) {
	for _, e := range escapes {
		if bytes.HasPrefix(b, []byte(e.escaped)) {
			return []byte(e.plain), len(e.escaped)
		}
	}
	return b[:2], 2
}

// minusZero reports whether b begins with the number -0, but not with -0.5.
func minusZero(b []byte) bool {
	return bytes.HasPrefix(b, []byte("-0")) && (len(b) == 2 || bytes.IndexByte([]byte(",]}"), b[2]) >= 0)
}

// Metadata holds members chosen by the customer.
type Metadata map[string]string

// MarshalJSON writes the members in the order of JSON.stringify after a parse: names that are array indexes first, in
// numeric order, then the others, here by name.
func (m Metadata) MarshalJSON() ([]byte, error) {
	names := slices.SortedFunc(maps.Keys(m), byIndexThenName)
	b := []byte{'{'}
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		for j, text := range []string{name, m[name]} {
			encoded, err := Canonical(text)
			if err != nil {
				return nil, err
			}
			if j > 0 {
				b = append(b, ':')
			}
			b = append(b, encoded...)
		}
	}
	return append(b, '}'), nil
}

func byIndexThenName(a, b string) int {
	x, isX := arrayIndex(a)
	y, isY := arrayIndex(b)
	switch {
	case isX && isY:
		return cmp.Compare(x, y)
	case isX:
		return -1
	case isY:
		return 1
	}
	return strings.Compare(a, b)
}

// arrayIndex parses an array index (ECMA-262 §6.1.7): a canonical number from 0 to 2³²−2.
func arrayIndex(name string) (uint64, bool) {
	n, err := strconv.ParseUint(name, 10, 32)
	return n, err == nil && n < 1<<32-1 && strconv.FormatUint(n, 10) == name
}
