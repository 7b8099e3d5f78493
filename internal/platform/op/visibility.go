package op

import (
	"context"
	"net/url"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
)

// Visibility finds the records of its organisation that a principal must not see. visibility.Guard implements it.
type Visibility interface {
	// Concerns reports whether an ID names a record that can be hidden.
	Concerns(id string) bool
	// AwaitRecord waits until the record of an ID is stored, if a phone can know the ID earlier.
	AwaitRecord(ctx context.Context, id string)
	// Hidden reports whether the context's principal must not see a record.
	Hidden(ctx context.Context, id string) (bool, error)
}

// A request with the ID of a hidden record runs with an ID that no record has. So every operation, also one that is added later,
// answers as for an unknown ID: in the path, the query and the body.

// hides reports whether records can be hidden from the principal.
func (c *Pipeline) hides(ctx context.Context) bool {
	p, ok := access.From(ctx)
	return c.Visibility != nil && ok && p.UserID != ""
}

// mask returns an ID, or an unknown one in its place if its record is hidden.
func (c *Pipeline) mask(ctx context.Context, id string) (string, error) {
	if c.Visibility == nil || !c.Visibility.Concerns(id) {
		return id, nil
	}
	c.Visibility.AwaitRecord(ctx, id)
	if !c.hides(ctx) {
		return id, nil
	}
	hidden, err := c.Visibility.Hidden(ctx, id)
	if err != nil || !hidden {
		return id, err
	}
	prefix, _, _ := strings.Cut(id, "_")
	return db.NewID(prefix), nil
}

// maskAddress masks the IDs in the path and the query of a request.
func (c *Pipeline) maskAddress(ctx context.Context, h huma.Context, o Operation) *Error {
	r, _ := unwrap(h)
	for name, id := range parameters(h, o.Path) {
		masked, err := c.mask(ctx, id)
		if err != nil {
			return c.toError(ctx, o, err)
		}
		if masked != id {
			r.SetPathValue(name, masked)
		}
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil // normalizeQuery refuses it
	}
	changed := false
	for _, all := range values {
		for i, text := range all {
			masked, err := c.maskList(ctx, text)
			if err != nil {
				return c.toError(ctx, o, err)
			}
			if masked != text {
				all[i], changed = masked, true
			}
		}
	}
	if changed {
		r.URL.RawQuery = values.Encode()
	}
	return nil
}

// maskList masks the IDs in a parameter with one ID, or several with commas.
func (c *Pipeline) maskList(ctx context.Context, text string) (string, error) {
	ids := strings.Split(text, ",")
	for i, id := range ids {
		masked, err := c.mask(ctx, id)
		if err != nil {
			return text, err
		}
		ids[i] = masked
	}
	return strings.Join(ids, ","), nil
}

// maskBody masks the IDs in the body of a request: the members whose names end in id or ids.
func (c *Pipeline) maskBody(ctx context.Context, in any) error {
	if !c.hides(ctx) {
		return nil
	}
	return c.maskIn(ctx, reflect.ValueOf(in), false)
}

// maskIn masks the IDs in a value. named says that the value is of a member that has IDs.
func (c *Pipeline) maskIn(ctx context.Context, v reflect.Value, named bool) error {
	switch v.Kind() {
	case reflect.String:
		if !named || !v.CanSet() {
			return nil
		}
		masked, err := c.mask(ctx, v.String())
		if err == nil && masked != v.String() {
			v.SetString(masked)
		}
		return err
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return c.maskIn(ctx, v.Elem(), named)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() || f.Tag.Get("query") != "" || f.Tag.Get("path") != "" {
				continue // maskAddress masks them
			}
			if err := c.maskIn(ctx, v.Field(i), hasIDs(f, named)); err != nil {
				return err
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return nil
		}
		for i := range v.Len() {
			if err := c.maskIn(ctx, v.Index(i), named); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasIDs reports whether a member of a body has IDs, by its name. The value of a Change belongs to the member around it.
func hasIDs(f reflect.StructField, around bool) bool {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" {
		return around && f.Name == "V"
	}
	return name == "id" || name == "ids" || strings.HasSuffix(name, "_id") || strings.HasSuffix(name, "_ids")
}
