package op

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/access"
	"soniq/internal/platform/clock/localday"
	"soniq/internal/platform/db"
)

// Span is embedded in the input of lists with a time range.
type Span struct {
	Since string `query:"since" maxLength:"40" doc:"From this time on: RFC 3339, or a date YYYY-MM-DD in the organisation's time zone" example:"2026-01-31T09:30:00Z"`
	Until string `query:"until" maxLength:"40" doc:"Before this time: RFC 3339, or a date YYYY-MM-DD in the organisation's time zone"`

	zone string // time zone of dates; empty: UTC
}

// Resolve sets the time zone of the caller's organisation. The library calls it.
func (s *Span) Resolve(h huma.Context) []error {
	*s = s.In(h.Context())
	return nil
}

// In sets the time zone of the caller's organisation.
func (s Span) In(ctx context.Context) Span {
	p, _ := access.From(ctx)
	s.zone = p.Timezone
	return s
}

// Times returns both ends. A missing end is zero.
func (s Span) Times() (since, until db.Time, err error) {
	var wrong []Violation
	since, wrong = s.moment("since", s.Since, wrong)
	until, wrong = s.moment("until", s.Until, wrong)
	if len(wrong) > 0 {
		return since, until, wrongQuery(wrong...)
	}
	return since, until, nil
}

func (s Span) moment(field, text string, wrong []Violation) (db.Time, []Violation) {
	if text == "" {
		return db.Time{}, wrong
	}
	zone, err := time.LoadLocation(s.zone)
	if err != nil {
		zone = time.UTC
	}
	if t, ok := localday.Parse(text, zone); ok && sensible(t) {
		return db.At(t), wrong
	}
	return db.Time{}, append(wrong, Field(field, "invalid_time", "must be RFC 3339 such as 2026-01-31T09:30:00Z, or YYYY-MM-DD"))
}

// sensible reports whether a time can be stored in microseconds.
func sensible(t time.Time) bool { return t.Year() >= 1 && t.Year() <= 9999 }
