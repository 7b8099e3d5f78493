package analytics

import (
	"context"
	"time"

	"soniq/internal/platform/clock/localday"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// maxPeriod is the longest time between since and until: 13 months.
const maxPeriod = 397 * 24 * time.Hour

// maxPoints limits the length of a series.
const maxPoints = 2000

// PeriodIn selects a period and the interval of its series.
type PeriodIn struct {
	Since    string `query:"since" maxLength:"40" doc:"From this time on: RFC 3339, or YYYY-MM-DD in the time zone; default the beginning of the day 30 days before until"`
	Until    string `query:"until" maxLength:"40" doc:"Before this time: RFC 3339, or YYYY-MM-DD; default now. 13 months after since at most"`
	Interval string `query:"interval" enum:"hour,day,week,month" default:"day" doc:"Steps of the series; weeks begin on Monday"`
	Timezone string `query:"timezone" maxLength:"60" doc:"Time zone of days and hours, as in Europe/Berlin; the organisation's unless given"`
}

// period is a span of time divided into steps.
type period struct {
	since, until time.Time
	zone         *time.Location
	interval     string
	steps        []time.Time // start of each step; the first may be before since
}

// period parses and checks the period of a request.
func (s *Service) period(ctx context.Context, org string, in PeriodIn) (p period, err error) {
	if p.zone, err = s.zone(ctx, org, in.Timezone); err != nil {
		return p, err
	}
	var wrong []op.Violation
	read := func(field, text string, otherwise time.Time) time.Time {
		t, ok := localday.Parse(text, p.zone)
		if text == "" {
			return otherwise
		}
		if !ok {
			wrong = append(wrong, op.Field(field, "invalid_time",
				"must be a time such as 2026-01-31T09:30:00Z, or a date such as 2026-01-31"))
		} else if t.Before(time.Unix(0, 0)) {
			wrong = append(wrong, op.Field(field, "out_of_range", "must not lie before 1970"))
		}
		return t
	}
	p.interval = in.Interval
	p.until = read("until", in.Until, s.cfg.Clock.Now())
	p.since = read("since", in.Since, localday.DateOf(p.until, p.zone).Add(-30).Start(p.zone))
	switch {
	case len(wrong) > 0:
	case !p.until.After(p.since):
		wrong = append(wrong, op.Field("until", "out_of_range", "must lie after since"))
	case p.until.Sub(p.since) > maxPeriod:
		wrong = append(wrong, op.Field("since", "out_of_range", "must lie at most 13 months before until"))
	default:
		if p.steps = p.stepStarts(); len(p.steps) > maxPoints {
			wrong = append(wrong, op.Field("interval", "out_of_range",
				"makes more than 2000 steps: ask for a longer interval or a shorter time"))
		}
	}
	if len(wrong) > 0 {
		e := op.Invalid(wrong...)
		e.Code = "invalid_query"
		return p, e
	}
	return p, nil
}

func (s *Service) zone(ctx context.Context, org, name string) (*time.Location, error) {
	if name == "" {
		return s.cfg.Zones.Zone(ctx, org)
	}
	z, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		e := op.Invalid(op.Field("timezone", "invalid_value", "not a time zone such as Europe/Berlin"))
		e.Code = "invalid_query"
		return nil, e
	}
	return z, nil
}

// stepStarts returns the start of each step.
func (p period) stepStarts() (steps []time.Time) {
	at := localday.StepStart(p.since, p.interval, p.zone)
	for ; at.Before(p.until) && len(steps) <= maxPoints; at = localday.NextStep(at, p.interval, p.zone) {
		steps = append(steps, at)
	}
	return steps
}

// stepIndex returns the index of the step that contains t.
func (p period) stepIndex(t time.Time) int {
	low, high := 0, len(p.steps)
	for high-low > 1 {
		if middle := (low + high) / 2; p.steps[middle].After(t) {
			high = middle
		} else {
			low = middle
		}
	}
	return low
}

// onQuarters reports whether the period starts and ends on a quarter. The end may also be now or later.
func (p period) onQuarters(now time.Time) bool {
	return p.since.Equal(p.since.Truncate(quarter)) && (p.until.Equal(p.until.Truncate(quarter)) || !p.until.Before(now.Add(-time.Second)))
}

func (p period) times() (since, until db.Time) { return db.At(p.since), db.At(p.until) }
