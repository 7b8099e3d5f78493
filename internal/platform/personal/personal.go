// Package personal writes stored data about one person to an export.
package personal

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"soniq/internal/platform/db"
)

// Writer receives the stored data about one person.
type Writer interface {
	// Item adds a JSON value to a kind, which is named after its table. The same value of a kind is written once.
	Item(kind string, item any) error
	// Sound adds a sound file.
	Sound(f Sound)
}

// Sound is a sound file of a recording or message.
type Sound struct {
	ID   string // of the recording or message
	Blob string // name in the store of files
}

// internal has the columns that are left out: keys, indexes and places of the program.
var internal = []string{"org_id", "blob", "node", "digest", "sha256", "key", "revision", "sort_name", "search", "model", "vector", "terms",
	"embedding", "embedding_model", "embedding_size", "round", "digits", "tail", "domestic", "lease_until", "checksum", "part_key",
	"has_sound"}

// times has the columns with a time whose name does not end in _at.
var times = []string{"at", "held_since", "retention_until", "window_end"}

// values has the columns with JSON.
var values = []string{"quality", "tags", "metadata", "transfer", "contact", "pauses", "consent", "redactions", "segments", "note",
	"attempts", "media", "phones", "emails", "custom", "skills", "callback", "topics", "action_items", "tools", "event", "disposition_by",
	"last_message", "forwarded", "error", "base", "written"}

// Rows adds the rows of a query to a kind, each as an object with the columns as members.
func Rows(ctx context.Context, q db.Querier, w Writer, kind, query string, args ...any) error {
	_, err := rows(ctx, q, w, kind, query, args)
	return err
}

// RowsWithSound adds the rows of a query to a kind, as Rows does, and the sound file of each row. The query selects id, blob, and a boolean
// has_sound.
func RowsWithSound(ctx context.Context, q db.Querier, w Writer, kind, query string, args ...any) error {
	sounds, err := rows(ctx, q, w, kind, query, args)
	for _, s := range sounds {
		w.Sound(s)
	}
	return err
}

func rows(ctx context.Context, q db.Querier, w Writer, kind, query string, args []any) (sounds []Sound, err error) {
	found, err := q.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("export %s: %w", kind, err)
	}
	defer found.Close()
	columns, err := found.ColumnTypes()
	if err != nil {
		return nil, err
	}
	r := row{values: make([]any, len(columns))}
	for _, c := range columns {
		r.names = append(r.names, c.Name())
	}
	into := make([]any, len(r.names))
	for i := range into {
		into[i] = &r.values[i]
	}
	for found.Next() {
		if err := found.Scan(into...); err != nil {
			return nil, fmt.Errorf("export %s: %w", kind, err)
		}
		for i, c := range columns {
			if n, ok := r.values[i].(int64); ok && c.DatabaseTypeName() == "BOOLEAN" { // SQLite
				r.values[i] = n != 0
			}
		}
		if err := w.Item(kind, r); err != nil {
			return nil, err
		}
		if s := (Sound{ID: r.text("id"), Blob: r.text("blob")}); s.Blob != "" && r.is("has_sound") {
			sounds = append(sounds, s)
		}
	}
	return sounds, found.Err()
}

// row is a row of a table.
type row struct {
	names  []string
	values []any
}

func (r row) text(name string) string {
	if i := slices.Index(r.names, name); i >= 0 {
		s, _ := r.values[i].(string)
		return s
	}
	return ""
}

// is reports whether a column is true. SQLite returns an expression as a number.
func (r row) is(name string) bool {
	i := slices.Index(r.names, name)
	return i >= 0 && (r.values[i] == true || r.values[i] == int64(1))
}

// MarshalJSON returns the columns as an object in their order.
func (r row) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range r.names {
		if slices.Contains(internal, name) {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		value, err := json.Marshal(member(name, r.values[i]))
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", name, err)
		}
		fmt.Fprintf(&b, "%q:%s", name, value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// member returns the value of a column as it is exported: times as in the API, JSON as JSON.
func member(name string, value any) any {
	switch v := value.(type) {
	case int64:
		if strings.HasSuffix(name, "_at") || slices.Contains(times, name) {
			var t db.Time
			_ = t.Scan(v) // an int64 is always a time
			return t
		}
	case string:
		if slices.Contains(values, name) && json.Valid([]byte(v)) {
			return json.RawMessage(v)
		}
	}
	return value
}
