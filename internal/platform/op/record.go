package op

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"net/http"
	"path"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
)

// This file gives configuration records their versions. A record is what can be read at an address at which it can be changed
// too: GET /users/{id} beside PATCH /users/{id}; or only deleted, where it tells when it was changed. Rooms need do nothing for it. Reading and changing answer with the
// ETag, GET honours If-None-Match, and changes honour If-Match before their function is called, in their transaction.

// A Reader reads a record by the parameters of its path, and tells its ETag. Where a record cannot be read at the address at
// which it is changed, Record hands over one.
type Reader func(ctx context.Context, parameters map[string]string) (tag string, err error)

// Record hands over how the record of a change is read where no GET has the same path.
func (o Operation) Record(read Reader) Operation { o.record = read; return o }

// Read makes a Reader of what answers a GET.
func Read[I, O any](fn func(context.Context, *I) (*Out[O], error)) Reader {
	return func(ctx context.Context, parameters map[string]string) (string, error) {
		in := new(I)
		fill(reflect.ValueOf(in).Elem(), parameters)
		out, err := fn(ctx, in)
		if err != nil || out == nil {
			return "", err
		}
		return tagOf(out), nil
	}
}

// Revised is implemented by records whose version does not follow from updated_at or all of their members, such as those that
// show addresses that are made anew each time.
type Revised interface{ Revision() string }

// tagOf is the ETag of an answer: the one the room gave, or one made of its revision, of updated_at, or of all its members.
func tagOf[O any](out *Out[O]) string {
	if out.ETag != "" {
		return out.ETag
	}
	if tag := TagOf(out.Body); tag != "" {
		return tag
	}
	body, err := encode(out.Body)
	if err != nil {
		return ""
	}
	return digest(body)
}

// TagOf is the ETag of a record that tells its revision or when it was changed; "" of others.
func TagOf(record any) string {
	if r, ok := record.(Revised); ok {
		return digest([]byte(r.Revision()))
	}
	if at, ok := updatedAt(reflect.ValueOf(record)); ok {
		return Tag(at)
	}
	return ""
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// tells reports whether records of a type tell their version.
func tells(t reflect.Type) bool {
	if t.Implements(reflect.TypeFor[Revised]()) {
		return true
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && (name == "updated_at" && f.Type == timeType || f.Anonymous && name == "" && tells(f.Type)) {
			return true
		}
	}
	return false
}

// updatedAt finds the member updated_at of a record.
func updatedAt(v reflect.Value) (db.Time, bool) {
	if !v.IsValid() {
		return db.Time{}, false
	}
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return db.Time{}, false
		}
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return db.Time{}, false
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() {
			continue
		}
		if f.Type == timeType && name == "updated_at" {
			at, _ := v.Field(i).Interface().(db.Time)
			return at, !at.IsZero()
		}
		if f.Anonymous && name == "" {
			if at, ok := updatedAt(v.Field(i)); ok {
				return at, true
			}
		}
	}
	return db.Time{}, false
}

// fill puts the parameters of a path into an input.
func fill(v reflect.Value, parameters map[string]string) {
	if v.Kind() != reflect.Struct {
		return
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name := f.Tag.Get("path")
		switch {
		case name != "" && v.Field(i).Kind() == reflect.String:
			v.Field(i).SetString(parameters[name])
		case f.Anonymous && f.IsExported():
			fill(v.Field(i), parameters)
		}
	}
}

// link finds, for every change, how its record is read, and for every GET whether it reads a record.
func link(operations []Operation) []Operation {
	gets, changed, tagged := map[string]Reader{}, map[string]bool{}, map[string]bool{}
	for _, o := range operations {
		if o.Method == http.MethodGet && o.read != nil && !o.list {
			gets[o.Path], tagged[o.Path] = o.read, o.tagged
		}
	}
	for _, o := range operations {
		changed[o.Path] = changed[o.Path] || o.changes() && (o.Method != http.MethodDelete || tagged[o.Path])
	}
	linked := make([]Operation, len(operations))
	for i, o := range operations {
		switch {
		case o.Method == http.MethodGet:
			o.versioned = gets[o.Path] != nil && changed[o.Path]
		case o.changes() && o.record == nil && changed[o.Path]:
			o.record = gets[o.Path]
		case o.Method == http.MethodPost:
			o.made, o.madeAt = made(gets, changed, o.Path)
		}
		linked[i] = o
	}
	return linked
}

// changes reports whether the operation changes what is at its own address.
func (o Operation) changes() bool {
	return o.Method == http.MethodPatch || o.Method == http.MethodPut || o.Method == http.MethodDelete
}

// made finds how the record is read that a POST to a collection makes, and the name of its parameter.
func made(gets map[string]Reader, changed map[string]bool, collection string) (Reader, string) {
	for p, read := range gets {
		parent, last := path.Split(p)
		if parent == collection+"/" && strings.HasPrefix(last, "{") && changed[p] {
			return read, strings.Trim(last, "{}")
		}
	}
	return nil, ""
}

// condition is what a request says of the version it knows.
type condition struct {
	match, noneMatch string
	parameters       map[string]string
}

type conditionKey struct{}

// withCondition keeps what the corridor needs of a request for a record, or of one that changes something.
func withCondition(h huma.Context, o Operation) context.Context {
	if !o.versioned && !o.Writes() {
		return h.Context()
	}
	c := condition{match: h.Header("If-Match"), noneMatch: h.Header("If-None-Match")}
	if o.Writes() {
		c.parameters = parameters(h, o.Path)
	}
	return context.WithValue(h.Context(), conditionKey{}, c)
}

func parameters(h huma.Context, path string) map[string]string {
	all := map[string]string{}
	for segment := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(segment, "{") {
			name := strings.Trim(segment, "{}")
			all[name] = h.Param(name)
		}
	}
	return all
}

// match fails with version_conflict where a change was made from another version than the record has now (RFC 9110 §13.1.1).
// Changes of one record wait for each other from here on.
func (c *Corridor) match(ctx context.Context, o Operation) error {
	known, _ := ctx.Value(conditionKey{}).(condition)
	if o.record == nil {
		return nil
	}
	if err := c.alone(ctx, o, known.parameters); err != nil || known.match == "" {
		return err
	}
	tag, err := o.record(ctx, known.parameters)
	if err != nil {
		return err
	}
	if !listed(known.match, tag, false) {
		return Fail("version_conflict", "the record was changed meanwhile")
	}
	return nil
}

// alone makes changes of a record one after the other on PostgreSQL, for the length of the transaction; SQLite has one writer.
func (c *Corridor) alone(ctx context.Context, o Operation, parameters map[string]string) error {
	if c.DB.Name() != "postgres" || !db.InTx(ctx) {
		return nil
	}
	h := fnv.New128a()
	for _, part := range []string{access.Org(ctx), o.Path} {
		_, _ = h.Write([]byte(part + "\n"))
	}
	for segment := range strings.SplitSeq(o.Path, "/") {
		_, _ = h.Write([]byte(parameters[strings.Trim(segment, "{}")] + "\n"))
	}
	key := int64(binary.BigEndian.Uint64(h.Sum(nil)))
	return c.DB.Tx(ctx, func(tx db.Querier) error {
		// tenant: the organisation is part of the key
		_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, key)
		return err
	})
}

// stamp gives the answer of a change its ETag where the room gave none.
func stamp[O any](ctx context.Context, o Operation, out *Out[O]) {
	if out == nil || out.ETag != "" {
		return
	}
	known, _ := ctx.Value(conditionKey{}).(condition)
	read, parameters := o.record, known.parameters
	if o.made != nil && out.Location != "" {
		read = o.made
		parameters[o.madeAt] = path.Base(out.Location)
	}
	if read == nil || parameters == nil {
		out.ETag = TagOf(out.Body)
		return
	}
	if tag, err := read(ctx, parameters); err == nil {
		out.ETag = tag
	}
}

// fresh gives a record its ETag, or says that the caller has this version already (RFC 9110 §13.1.2).
func fresh[O any](ctx context.Context, out *Out[O]) error {
	out.ETag = tagOf(out)
	known, _ := ctx.Value(conditionKey{}).(condition)
	if known.noneMatch != "" && listed(known.noneMatch, out.ETag, true) {
		return &notModified{out.ETag}
	}
	return nil
}

// listed finds a tag in a list of such; weak ones count where weak is true.
func listed(list, tag string, weak bool) bool {
	for one := range strings.SplitSeq(list, ",") {
		one = strings.TrimSpace(one)
		if weak {
			one = strings.TrimPrefix(one, "W/")
		}
		if one == "*" || one == tag {
			return true
		}
	}
	return false
}

// notModified is the answer 304, which the library takes as an error.
type notModified struct{ tag string }

func (n *notModified) Error() string           { return "not modified" }
func (n *notModified) GetStatus() int          { return http.StatusNotModified }
func (n *notModified) GetHeaders() http.Header { return http.Header{"Etag": {n.tag}} }

func isNotModified(err error) bool {
	var n *notModified
	return errors.As(err, &n)
}

// describeRecord adds to the description what records understand: 304 of GET, If-None-Match and If-Match.
func describeRecord(h *huma.Operation, o Operation) {
	tag := map[string]*huma.Param{"ETag": {Schema: &huma.Schema{Type: huma.TypeString}, Description: "The version of the record"}}
	if o.versioned {
		addHeader(h, "If-None-Match", "ETag of the version that is known; 304 when there is no other")
		h.Responses["304"] = &huma.Response{Description: http.StatusText(http.StatusNotModified), Headers: tag}
	}
	if o.changes() && o.record != nil {
		addHeader(h, "If-Match", "ETag of the version the change was made from; 412 when there is another")
	}
}
