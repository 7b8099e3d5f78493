package op

import (
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// Change is a member of a JSON merge patch (RFC 7396): absent, null, or a new value.
type Change[T any] struct {
	Set  bool // the member was present
	Null bool // the member was null: remove the value
	V    T
}

// UnmarshalJSON implements json.Unmarshaler. It is called for present members only.
func (c *Change[T]) UnmarshalJSON(b []byte) error {
	c.Set = true
	if string(b) == "null" {
		c.Null = true
		return nil
	}
	return json.Unmarshal(b, &c.V)
}

// MarshalJSON returns the value, or null.
func (c Change[T]) MarshalJSON() ([]byte, error) {
	if c.Null || !c.Set {
		return []byte("null"), nil
	}
	return json.Marshal(c.V)
}

// Schema returns the nullable schema of the value.
func (c Change[T]) Schema(r huma.Registry) *huma.Schema {
	s := *huma.SchemaFromType(r, reflect.TypeFor[T]())
	s.Nullable = true
	return &s
}

// Apply sets the new value if the member was present. Null sets the zero value.
func (c Change[T]) Apply(to *T) {
	if c.Set {
		*to = c.V
	}
}
