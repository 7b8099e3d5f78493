package op

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
)

// Paging is embedded in the input of every list.
type Paging struct {
	Limit        int      `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"Records per page"`
	Cursor       string   `query:"cursor" maxLength:"512" doc:"next_cursor of the page before; valid for 24 hours"`
	IncludeTotal bool     `query:"include_total" doc:"Add total, the number of all records"`
	Fields       []string `query:"fields" doc:"Only these members of each record"`
}

// A Page is a part of a list. The next page is asked for with next_cursor.
type Page[T any] struct {
	Data       []T     `json:"data" nullable:"false"`
	NextCursor *string `json:"next_cursor"`
	HasMore    bool    `json:"has_more"`
	Total      *int    `json:"total,omitempty"`

	fields []string
}

// A Position is where a page ends: the value of the sort column, and the id.
type Position struct {
	Int  int64  `json:"i,omitempty"`
	Text string `json:"s,omitempty"`
	ID   string `json:"id"`
}

// Cursors signs cursors, so that a position cannot be made up.
type Cursors struct {
	Key []byte
	Now func() time.Time

	list string // the list they belong to, and whose it is
}

type cursor struct {
	Position
	At int64 `json:"t"`
}

const cursorLife = 24 * time.Hour

func (c Cursors) encode(p Position) string {
	b, _ := json.Marshal(cursor{p, c.Now().Unix()})
	return base64.RawURLEncoding.EncodeToString(append(c.sum(b), b...))
}

func (c Cursors) sum(b []byte) []byte {
	m := hmac.New(sha256.New, c.Key)
	m.Write([]byte(c.list))
	m.Write(b)
	return m.Sum(nil)[:12]
}

func (c Cursors) decode(text string) (Position, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) < 13 || !hmac.Equal(b[:12], c.sum(b[12:])) {
		return Position{}, Fail("invalid_cursor", "this cursor was not made for this list with these filters in this order")
	}
	var x cursor
	if err := json.Unmarshal(b[12:], &x); err != nil {
		return Position{}, Fail("invalid_cursor", "this cursor cannot be read")
	}
	if c.Now().Sub(time.Unix(x.At, 0)) > cursorLife {
		return Position{}, Fail("invalid_cursor", "this cursor is older than 24 hours")
	}
	return x.Position, nil
}

type cursorsKey struct{}

// withCursors gives a list cursors that fit no other list, no other filters or order, and no other organisation.
func withCursors(ctx context.Context, c Cursors, o Operation) context.Context {
	c.list = o.ID + " " + access.Org(ctx) + " " + bound(ctx) + "\n"
	return context.WithValue(ctx, cursorsKey{}, c)
}

// After is where the page asked for starts; the zero Position at the beginning of the list.
func (p Paging) After(ctx context.Context) (Position, error) {
	if p.Cursor == "" {
		return Position{}, nil
	}
	c, _ := ctx.Value(cursorsKey{}).(Cursors)
	return c.decode(p.Cursor)
}

// Paged makes a page of rows, of which one more than the limit was read where there are more.
func Paged[T any](ctx context.Context, p Paging, rows []T, at func(T) Position) *Out[Page[T]] {
	page := Page[T]{Data: rows, fields: p.Fields}
	if page.Data == nil {
		page.Data = []T{}
	}
	if len(rows) > p.Limit {
		page.Data, page.HasMore = rows[:p.Limit], true
		c, _ := ctx.Value(cursorsKey{}).(Cursors)
		next := c.encode(at(rows[p.Limit-1]))
		page.NextCursor = &next
	}
	return &Out[Page[T]]{Body: page}
}

// A Counter counts what a list would show without an end.
type Counter interface {
	Count(ctx context.Context, q db.Querier) (int, error)
}

// All is the number of all records where it was asked for; nil where not. Ask before the filter is cut to a page.
func (p Paging) All(ctx context.Context, q db.Querier, f Counter) (*int, error) {
	if !p.IncludeTotal {
		return nil, nil
	}
	n, err := f.Count(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("count records: %w", err)
	}
	return &n, nil
}

// Counted adds the number of all records where it was asked for.
func Counted[T any](out *Out[Page[T]], p Paging, count func() (int, error)) (*Out[Page[T]], error) {
	if !p.IncludeTotal {
		return out, nil
	}
	n, err := count()
	if err != nil {
		return nil, fmt.Errorf("count records: %w", err)
	}
	out.Body.Total = &n
	return out, nil
}

// MarshalJSON leaves out the members that were not asked for.
func (p Page[T]) MarshalJSON() ([]byte, error) {
	type plain Page[T]
	if len(p.fields) == 0 {
		return encode(plain(p))
	}
	records := make([]json.RawMessage, len(p.Data))
	for i, r := range p.Data {
		b, err := encode(r)
		if err != nil {
			return nil, err
		}
		if records[i], err = sparse(b, p.fields); err != nil {
			return nil, err
		}
	}
	return encode(struct {
		Data       []json.RawMessage `json:"data"`
		NextCursor *string           `json:"next_cursor"`
		HasMore    bool              `json:"has_more"`
		Total      *int              `json:"total,omitempty"`
	}{records, p.NextCursor, p.HasMore, p.Total})
}

// unknownFields are names in fields that no record has.
func (p Page[T]) unknownFields() []Violation {
	if len(p.fields) == 0 {
		return nil
	}
	known := map[string]bool{"id": true}
	if !members(reflect.TypeFor[T](), known) {
		return nil
	}
	var wrong []Violation
	for _, f := range p.fields {
		if !known[f] {
			wrong = append(wrong, Field("fields", "unknown_member", f+" is no member of these records"))
		}
	}
	return wrong
}

// members collects the names of a record's members; it is false for what is no record.
func members(t reflect.Type, known map[string]bool) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			if !members(f.Type, known) {
				return false
			}
		case f.IsExported() && name == "":
			known[f.Name] = true
		case f.IsExported() && name != "-":
			known[name] = true
		}
	}
	return true
}

// sparse keeps the named members of an object, in their order, and id.
func sparse(object []byte, fields []string) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	out := []byte{'{'}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, err
		}
		if n, _ := name.(string); n == "id" || slices.Contains(fields, n) {
			if len(out) > 1 {
				out = append(out, ',')
			}
			quoted, _ := json.Marshal(n)
			out = append(append(append(out, quoted...), ':'), v...)
		}
	}
	return append(out, '}'), nil
}
