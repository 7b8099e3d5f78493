package op

import (
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// A Change is a member of a merge patch (RFC 7396): absent, null, or a new value.
type Change[T any] struct {
	Set  bool // the member was there
	Null bool // it was null: remove the value
	V    T
}

// UnmarshalJSON is called only for members that are there.
func (c *Change[T]) UnmarshalJSON(b []byte) error {
	c.Set = true
	if string(b) == "null" {
		c.Null = true
		return nil
	}
	return json.Unmarshal(b, &c.V)
}

// MarshalJSON writes the value, or null.
func (c Change[T]) MarshalJSON() ([]byte, error) {
	if c.Null || !c.Set {
		return []byte("null"), nil
	}
	return json.Marshal(c.V)
}

// Schema describes the member as its value, which may be null.
func (c Change[T]) Schema(r huma.Registry) *huma.Schema {
	s := *huma.SchemaFromType(r, reflect.TypeFor[T]())
	s.Nullable = true
	return &s
}

// Apply puts the new value, or the zero one for null, where the member was given.
func (c Change[T]) Apply(to *T) {
	if c.Set {
		*to = c.V
	}
}
