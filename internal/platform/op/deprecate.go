package op

import (
	"net/http"
	"strconv"
	"time"
)

// Deprecation announces the removal of an operation.
type Deprecation struct {
	Since  time.Time // deprecated from then on
	Sunset time.Time // may be removed from then on; at least 12 months later
	Link   string    // page with the replacement
}

// Deprecate announces the removal of the operation. Its responses have Deprecation (RFC 9745), Sunset (RFC 8594) and
// a link, and the description marks it. An earlier sunset is moved to 12 months after since.
func (o Operation) Deprecate(since, sunset time.Time, link string) Operation {
	if soonest := since.AddDate(1, 0, 0); sunset.Before(soonest) {
		sunset = soonest
	}
	o.deprecation = &Deprecation{since.UTC(), sunset.UTC(), link}
	return o
}

// Deprecation returns the announcement; nil for other operations.
func (o Operation) Deprecation() *Deprecation { return o.deprecation }

// writeHeaders writes the header fields of a response.
func (f *Deprecation) writeHeaders(h http.Header) {
	if f == nil {
		return
	}
	h.Set("Deprecation", "@"+strconv.FormatInt(f.Since.Unix(), 10))
	h.Set("Sunset", f.Sunset.Format(http.TimeFormat))
	h.Add("Link", "<"+f.Link+`>; rel="deprecation"; type="text/html"`)
}
