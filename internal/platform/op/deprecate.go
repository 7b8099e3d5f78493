package op

import (
	"net/http"
	"strconv"
	"time"
)

// A Farewell says that an operation will go.
type Farewell struct {
	Since  time.Time // from then on it should not be used
	Sunset time.Time // from then on it may be gone; at least 12 months later
	Link   string    // the page that tells what to use instead
}

// Deprecate declares that the operation will go: its answers carry Deprecation (RFC 9745), Sunset (RFC 8594) and a link, and the
// description says so. The sunset is moved to 12 months after since where it is earlier.
func (o Operation) Deprecate(since, sunset time.Time, link string) Operation {
	if soonest := since.AddDate(1, 0, 0); sunset.Before(soonest) {
		sunset = soonest
	}
	o.farewell = &Farewell{since.UTC(), sunset.UTC(), link}
	return o
}

// Farewell is what Deprecate declared; nil for operations that stay.
func (o Operation) Farewell() *Farewell { return o.farewell }

// tell writes the fields into an answer.
func (f *Farewell) tell(h http.Header) {
	if f == nil {
		return
	}
	h.Set("Deprecation", "@"+strconv.FormatInt(f.Since.Unix(), 10))
	h.Set("Sunset", f.Sunset.Format(http.TimeFormat))
	h.Add("Link", "<"+f.Link+`>; rel="deprecation"; type="text/html"`)
}
