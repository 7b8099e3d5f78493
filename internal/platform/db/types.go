package db

import (
	"crypto/rand"
	"database/sql/driver"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// Time is stored as microseconds since 1970 UTC, and as NULL if zero. Its JSON form is RFC 3339 in UTC with
// milliseconds, or null if zero.
type Time struct{ time.Time }

// At returns t as a Time, truncated to microseconds.
func At(t time.Time) Time { return Time{t.UTC().Truncate(time.Microsecond)} }

// Value implements driver.Valuer.
func (t Time) Value() (driver.Value, error) {
	if t.IsZero() {
		return nil, nil
	}
	return t.UnixMicro(), nil
}

// Scan implements sql.Scanner.
func (t *Time) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*t = Time{}
	case int64:
		*t = Time{time.UnixMicro(v).UTC()}
	default:
		return fmt.Errorf("scan %T into a time", src)
	}
	return nil
}

const timeFormat = "2006-01-02T15:04:05.000Z"

// String returns the form in the API; empty for the zero time.
func (t Time) String() string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeFormat)
}

// MarshalJSON returns the form in the API.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return []byte(`"` + t.String() + `"`), nil
}

// UnmarshalJSON parses RFC 3339 or null.
func (t *Time) UnmarshalJSON(b []byte) error {
	var p *time.Time
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	*t = Time{}
	if p != nil {
		*t = At(*p)
	}
	return nil
}

// Ptr returns nil for the zero time, for fields that may be null.
func (t Time) Ptr() *Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// JSON is a column with a value as JSON text, for lists and small objects without filters.
type JSON[T any] struct{ V T }

// AsJSON wraps v for a column.
func AsJSON[T any](v T) JSON[T] { return JSON[T]{v} }

// Value implements driver.Valuer.
func (j JSON[T]) Value() (driver.Value, error) {
	b, err := json.Marshal(j.V)
	return string(b), err
}

// Scan implements sql.Scanner. NULL and "" are the zero value.
func (j *JSON[T]) Scan(src any) error {
	var zero T
	j.V = zero
	switch v := src.(type) {
	case nil:
		return nil
	case string:
		return unmarshal([]byte(v), &j.V)
	case []byte:
		return unmarshal(v, &j.V)
	}
	return fmt.Errorf("scan %T into JSON", src)
}

func unmarshal(b []byte, v any) error {
	if len(b) == 0 {
		return nil
	}
	return json.Unmarshal(b, v)
}

// Null is an optional text or reference: "" is stored as NULL, and NULL is read as "".
type Null string

// Value implements driver.Valuer.
func (n Null) Value() (driver.Value, error) {
	if n == "" {
		return nil, nil
	}
	return string(n), nil
}

// Scan implements sql.Scanner.
func (n *Null) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*n = ""
	case string:
		*n = Null(v)
	case []byte:
		*n = Null(v)
	default:
		return fmt.Errorf("scan %T into text", src)
	}
	return nil
}

// Ptr returns nil for "", for fields that may be null.
func (n Null) Ptr() *string {
	if n == "" {
		return nil
	}
	s := string(n)
	return &s
}

// clock generates the first 64 bits of IDs: milliseconds and a counter. IDs of one process therefore sort by
// creation.
var clock struct {
	mu   sync.Mutex // guards last
	last uint64
}

func tick() uint64 {
	clock.mu.Lock()
	defer clock.mu.Unlock()
	t := uint64(time.Now().UnixMilli()) << 16
	if t <= clock.last {
		t = clock.last + 1
	}
	clock.last = t
	return t
}

const base32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// NewID returns a new ID: the prefix, "_", and 26 characters that sort by creation time.
func NewID(prefix string) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], tick())
	if _, err := rand.Read(b[8:]); err != nil {
		panic(err) // crypto/rand does not fail on the systems we run on
	}
	return prefix + "_" + encode(b)
}

// FirstID returns the lowest possible ID of a time. All IDs created before sort below it.
func FirstID(prefix string, at time.Time) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(max(0, at.UnixMilli()))<<16)
	return prefix + "_" + encode(b)
}

// encode returns 128 bits as 26 characters of 5 bits, most significant first.
func encode(b [16]byte) string {
	hi, lo := binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
	var out [26]byte
	for i := 25; i >= 0; i-- {
		out[i] = base32[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return string(out[:])
}
