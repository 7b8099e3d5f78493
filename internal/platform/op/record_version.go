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

// Versions (ETags) of configuration records. A record is a resource with GET and PATCH or PUT on the same path, such
// as /users/{id}. With DELETE only, it is a record if it has updated_at. Services need no code for it. Reads and
// changes return the ETag. GET supports If-None-Match. Changes check If-Match before their function runs, in the same
// transaction.

// Reader reads a record by its path parameters and returns its ETag. Record sets one if the record has no GET at the
// path of the change.
type Reader func(ctx context.Context, parameters map[string]string) (tag string, err error)

// Record sets the Reader for a change whose path has no GET.
func (o Operation) Record(read Reader) Operation { o.record = read; return o }

// Read returns a Reader that calls the function of a GET.
func Read[I, O any](fn func(context.Context, *I) (*Out[O], error)) Reader {
	return func(ctx context.Context, parameters map[string]string) (string, error) {
		in := new(I)
		fillPath(reflect.ValueOf(in).Elem(), parameters)
		out, err := fn(ctx, in)
		if err != nil || out == nil {
			return "", err
		}
		return tagOf(out), nil
	}
}

// Revised is implemented by records whose version does not follow from updated_at or from all members. They may contain URLs that are
// generated for each response.
type Revised interface{ Revision() string }

// tagOf returns the ETag of a response: the one of the service, or one of its revision, of updated_at, or of all its
// members.
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

// TagOf returns the ETag of a record with a revision or updated_at; empty for others.
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

// hasVersion reports whether records of a type have a revision or updated_at.
func hasVersion(t reflect.Type) bool {
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
		if f.IsExported() && (name == "updated_at" && f.Type == timeType || f.Anonymous && name == "" && hasVersion(f.Type)) {
			return true
		}
	}
	return false
}

// updatedAt returns the member updated_at of a record.
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

// fillPath sets the path parameters of an input.
func fillPath(v reflect.Value, parameters map[string]string) {
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
			fillPath(v.Field(i), parameters)
		}
	}
}

// linkRecords sets the Reader of every change, and marks the GETs of records.
func linkRecords(operations []Operation) []Operation {
	gets, changed, tagged := map[string]Reader{}, map[string]bool{}, map[string]bool{}
	for _, o := range operations {
		if o.Method == http.MethodGet && o.read != nil && !o.list {
			gets[o.Path], tagged[o.Path] = o.read, o.hasVersion
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
			o.created, o.createdParam = createdReader(gets, changed, o.Path)
		}
		linked[i] = o
	}
	return linked
}

// changes reports whether the operation changes the record at its own path.
func (o Operation) changes() bool {
	return o.Method == http.MethodPatch || o.Method == http.MethodPut || o.Method == http.MethodDelete
}

// createdReader returns the Reader of records that a POST to a collection creates, and the name of their path
// parameter.
func createdReader(gets map[string]Reader, changed map[string]bool, collection string) (Reader, string) {
	for p, read := range gets {
		parent, last := path.Split(p)
		if parent == collection+"/" && strings.HasPrefix(last, "{") && changed[p] {
			return read, strings.Trim(last, "{}")
		}
	}
	return nil, ""
}

// condition has the request's conditions on the version.
type condition struct {
	match, noneMatch string
	parameters       map[string]string
}

type conditionKey struct{}

// withCondition stores conditions and path parameters of a request for the pipeline.
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

// checkIfMatch returns version_conflict if the change was based on another version of the record (RFC 9110 §13.1.1).
// From here on, changes of one record wait for each other.
func (c *Pipeline) checkIfMatch(ctx context.Context, o Operation) error {
	known, _ := ctx.Value(conditionKey{}).(condition)
	if o.record == nil {
		return nil
	}
	if err := c.lockRecord(ctx, o, known.parameters); err != nil || known.match == "" {
		return err
	}
	tag, err := o.record(ctx, known.parameters)
	if err != nil {
		return err
	}
	if !matchesTag(known.match, tag, false) {
		return Fail("version_conflict", "the record was changed meanwhile")
	}
	return nil
}

// lockRecord serialises changes of a record on PostgreSQL until the end of the transaction. SQLite has one writer.
func (c *Pipeline) lockRecord(ctx context.Context, o Operation, parameters map[string]string) error {
	if c.DB.Name() != "postgres" || !db.InTx(ctx) {
		return nil
	}
	h := fnv.New128a()
	p, _ := access.From(ctx)
	parts := []string{p.OrgID, o.Path}
	if o.Personal {
		parts = append(parts, p.UserID)
	}
	for _, part := range parts {
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

// setETag sets the ETag of the response to a change, unless the service has set one.
func setETag[O any](ctx context.Context, o Operation, out *Out[O]) {
	if out == nil || out.ETag != "" {
		return
	}
	known, _ := ctx.Value(conditionKey{}).(condition)
	read, parameters := o.record, known.parameters
	if o.created != nil && out.Location != "" {
		read = o.created
		parameters[o.createdParam] = path.Base(out.Location)
	}
	if read == nil || parameters == nil {
		out.ETag = TagOf(out.Body)
		return
	}
	if tag, err := read(ctx, parameters); err == nil {
		out.ETag = tag
	}
}

// checkNotModified sets the ETag of a record, and returns notModified if the caller has this version (RFC 9110
// §13.1.2).
func checkNotModified[O any](ctx context.Context, out *Out[O]) error {
	out.ETag = tagOf(out)
	known, _ := ctx.Value(conditionKey{}).(condition)
	if known.noneMatch != "" && matchesTag(known.noneMatch, out.ETag, true) {
		return &notModified{out.ETag}
	}
	return nil
}

// matchesTag reports whether a list of ETags contains a tag. Weak ETags count if weak is true.
func matchesTag(list, tag string, weak bool) bool {
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

// notModified is the response 304, which the library takes as an error.
type notModified struct{ tag string }

func (n *notModified) Error() string           { return "not modified" }
func (n *notModified) GetStatus() int          { return http.StatusNotModified }
func (n *notModified) GetHeaders() http.Header { return http.Header{"Etag": {n.tag}} }

func isNotModified(err error) bool {
	var n *notModified
	return errors.As(err, &n)
}

// describeRecord adds 304, If-None-Match and If-Match to the description of records.
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
