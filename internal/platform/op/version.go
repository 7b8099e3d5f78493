package op

import (
	"strconv"
	"strings"

	"soniq/internal/platform/db"
)

// Match is embedded in the input of changes whose function checks the version itself. The pipeline does it for all
// changes of records.
type Match struct {
	IfMatch string `header:"If-Match" maxLength:"100" doc:"ETag of the version the change was made from; 412 when there is a newer one"`
}

// Tag returns the ETag of a record last changed at t.
func Tag(t db.Time) string { return `"` + strconv.FormatInt(t.UnixMicro(), 36) + `"` }

// Check returns version_conflict if the caller has another version than the one last changed at t (RFC 9110
// §13.1.1).
func (m Match) Check(t db.Time) error {
	if m.IfMatch == "" {
		return nil
	}
	for tag := range strings.SplitSeq(m.IfMatch, ",") {
		if tag = strings.TrimSpace(tag); tag == "*" || tag == Tag(t) {
			return nil
		}
	}
	return Fail("version_conflict", "the record was changed meanwhile")
}

// Versioned returns a record with the ETag of its version.
func Versioned[T any](v T, changed db.Time) (*Out[T], error) {
	return &Out[T]{Body: v, ETag: Tag(changed)}, nil
}
