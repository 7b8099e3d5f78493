package org

import (
	"fmt"
	"slices"
	"time"

	"soniq/internal/platform/op"
)

// Hours are business hours.
type Hours struct {
	Timezone   string           `json:"timezone,omitempty" doc:"IANA name; that of the organisation unless given" example:"Europe/London"`
	Weekly     Week             `json:"weekly,omitzero"`
	Exceptions []HoursException `json:"exceptions,omitempty" doc:"Days that are unlike others; they come before the week" maxItems:"366"`
}

// Week holds the open hours of each day. A day without intervals is closed.
type Week struct {
	Mon []Interval `json:"mon,omitempty" maxItems:"24"`
	Tue []Interval `json:"tue,omitempty" maxItems:"24"`
	Wed []Interval `json:"wed,omitempty" maxItems:"24"`
	Thu []Interval `json:"thu,omitempty" maxItems:"24"`
	Fri []Interval `json:"fri,omitempty" maxItems:"24"`
	Sat []Interval `json:"sat,omitempty" maxItems:"24"`
	Sun []Interval `json:"sun,omitempty" maxItems:"24"`
}

// Interval is a part of a day: From is included, To is not.
type Interval struct {
	From string `json:"from" example:"09:00"`
	To   string `json:"to" example:"17:30" doc:"24:00 is the end of the day"`
}

// HoursException replaces the hours of one date.
type HoursException struct {
	Date      string     `json:"date" example:"2026-12-25"`
	Closed    bool       `json:"closed,omitempty"`
	Intervals []Interval `json:"intervals,omitempty" maxItems:"24"`
	Label     string     `json:"label,omitempty" maxLength:"120" example:"Christmas"`
}

func (w Week) day(d time.Weekday) []Interval {
	return [][]Interval{w.Sun, w.Mon, w.Tue, w.Wed, w.Thu, w.Fri, w.Sat}[d]
}

// dayNames are the fields of Week in the order of time.Weekday, from Sunday.
var dayNames = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// clock converts hh:mm to minutes of the day. 24:00 is the end of the day.
func clock(text string) (minutes int, ok bool) {
	if text == "24:00" {
		return 24 * 60, true
	}
	t, err := time.Parse("15:04", text)
	return t.Hour()*60 + t.Minute(), err == nil && len(text) == len("15:04")
}

// Violations lists the violations of business hours. field is their name in the request.
func (h Hours) Violations(field string) (wrong []op.Violation) {
	if _, err := time.LoadLocation(h.Timezone); err != nil || h.Timezone == "Local" {
		wrong = append(wrong, op.Field(field+".timezone", "invalid_timezone", "must be an IANA name such as Europe/London"))
	}
	for d, name := range dayNames {
		wrong = append(wrong, intervalViolations(field+".weekly."+name, h.Weekly.day(time.Weekday(d)))...)
	}
	for i, e := range h.Exceptions {
		at := fmt.Sprintf("%s.exceptions[%d]", field, i)
		if _, err := time.Parse(time.DateOnly, e.Date); err != nil {
			wrong = append(wrong, op.Field(at+".date", "invalid_date", "must be a date such as 2026-12-25"))
		}
		if e.Closed == (len(e.Intervals) > 0) {
			wrong = append(wrong, op.Field(at, "ambiguous", "give either closed or intervals"))
		}
		wrong = append(wrong, intervalViolations(at+".intervals", e.Intervals)...)
	}
	return wrong
}

func intervalViolations(field string, all []Interval) (wrong []op.Violation) {
	type span struct{ from, to int }
	var spans []span
	for i, x := range all {
		from, okFrom := clock(x.From)
		to, okTo := clock(x.To)
		switch at := fmt.Sprintf("%s[%d]", field, i); {
		case !okFrom || !okTo:
			wrong = append(wrong, op.Field(at, "invalid_time", "from and to must be times such as 09:00"))
		case from >= to:
			wrong = append(wrong, op.Field(at, "out_of_order", "to must come after from; hours over midnight are two intervals"))
		default:
			spans = append(spans, span{from, to})
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	for i := 1; i < len(spans); i++ {
		if spans[i].from < spans[i-1].to {
			return append(wrong, op.Field(field, "overlapping", "intervals must not overlap"))
		}
	}
	return wrong
}

// At reports whether the hours are open at a time, and whether an exception decided it. zone is the organisation's
// time zone; the zone of the hours takes precedence.
func (h Hours) At(now time.Time, zone *time.Location) (open, exception bool) {
	if h.Timezone != "" {
		if own, err := time.LoadLocation(h.Timezone); err == nil {
			zone = own
		}
	}
	now = now.In(zone)
	minute := now.Hour()*60 + now.Minute()
	in := func(all []Interval) bool {
		return slices.ContainsFunc(all, func(x Interval) bool {
			from, _ := clock(x.From)
			to, _ := clock(x.To)
			return from <= minute && minute < to
		})
	}
	for _, e := range h.Exceptions {
		if e.Date == now.Format(time.DateOnly) {
			return !e.Closed && in(e.Intervals), true
		}
	}
	return in(h.Weekly.day(now.Weekday())), false
}
