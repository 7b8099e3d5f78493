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
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
)

// Paging is embedded in the input of every list.
type Paging struct {
	Limit        int      `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"Records per page"`
	Cursor       string   `query:"cursor" maxLength:"512" doc:"next_cursor of the page before; valid for 24 hours"`
	IncludeTotal bool     `query:"include_total" doc:"Add total, the number of all records"`
	Fields       []string `query:"fields" doc:"Only these members of each record"`
}

// Page is one page of a list. next_cursor requests the next one.
type Page[T any] struct {
	Data       []T     `json:"data" nullable:"false"`
	NextCursor *string `json:"next_cursor"`
	HasMore    bool    `json:"has_more"`
	Total      *int    `json:"total,omitempty"`

	fields []string
}

// Position is the end of a page: the value of the sort column, and the ID.
type Position struct {
	Int  int64  `json:"i,omitempty"`
	Text string `json:"s,omitempty"`
	ID   string `json:"id"`
}

// Cursors signs cursors, so that a client cannot forge a position.
type Cursors struct {
	Key   []byte
	Clock clock.Clock // nil: the system clock

	list string // list, organisation and filters that the cursors belong to
}

// now returns the time of the clock.
func (c Cursors) now() time.Time { return clock.OrSystem(c.Clock).Now() }

type cursor struct {
	Position
	At int64 `json:"t"`
}

const cursorLife = 24 * time.Hour

func (c Cursors) encode(p Position) string {
	b, _ := json.Marshal(cursor{p, c.now().Unix()})
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
	if c.now().Sub(time.Unix(x.At, 0)) > cursorLife {
		return Position{}, Fail("invalid_cursor", "this cursor is older than 24 hours")
	}
	return x.Position, nil
}

type cursorsKey struct{}

// withCursors returns a context whose cursors are only valid for this list with these filters, this order and this
// organisation.
func withCursors(ctx context.Context, c Cursors, o Operation) context.Context {
	c.list = o.ID + " " + access.Org(ctx) + " " + cursorScope(ctx) + "\n"
	return context.WithValue(ctx, cursorsKey{}, c)
}

// After returns the position after which the requested page starts; zero for the first page.
func (p Paging) After(ctx context.Context) (Position, error) {
	if p.Cursor == "" {
		return Position{}, nil
	}
	c, _ := ctx.Value(cursorsKey{}).(Cursors)
	return c.decode(p.Cursor)
}

// Paged returns a page of rows. The rows must include one more than the limit if there are more.
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

// Counter counts all records of a list.
type Counter interface {
	Count(ctx context.Context, q db.Querier) (int, error)
}

// Total returns the number of all records if requested, otherwise nil. Call it before the filter is limited to a
// page.
func (p Paging) Total(ctx context.Context, q db.Querier, f Counter) (*int, error) {
	if !p.IncludeTotal {
		return nil, nil
	}
	n, err := f.Count(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("count records: %w", err)
	}
	return &n, nil
}

// WithTotal adds the number of all records if requested.
func WithTotal[T any](out *Out[Page[T]], p Paging, count func() (int, error)) (*Out[Page[T]], error) {
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

// MarshalJSON omits members that the fields parameter does not list.
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

// unknownFields returns the entries of fields that are not members of the records.
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

// members collects the member names of a record. It returns false if the type is not a record.
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

// sparse returns an object with the named members in their order, and id.
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
