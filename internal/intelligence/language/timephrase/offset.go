package timephrase

import (
	"strings"
	"time"
)

// offset is a length of time from the moment at which it was said, or from a day.
type offset struct {
	halves int    // the amount, in halves of the unit; quarters of an hour are minutes
	unit   string // minute, hour, day, business day, week, month
	base   *day   // nil: from now
}

// offset reads "in two hours", "within the next three business days", "two weeks from Monday".
func (r *reader) offset() (o offset, ok bool) {
	ok = r.try(func() bool {
		lead := r.any("in", "within", "inside", "inside of")
		r.skip("no more than", "the", "about", "around", "roughly", "less than", "under", "at most", "another", "next", "maybe", "just",
			"only", "over", "up to")
		article := r.peek(-1) == "the" || r.peek(-1) == "next"
		if o, ok = r.amount(article); !ok {
			return false
		}
		r.skip("'s", "'", "’")
		tail := r.any("from now", "from today", "hence", "time")
		if base, ok := r.baseDay(); ok && lead == "" {
			o.base = &base
			return o.unit == "day" || o.unit == "week" || o.unit == "month"
		}
		return lead != "" || tail != "" && tail != "time"
	})
	return o, ok
}

// baseDay reads the day from which an offset counts: "from Monday", "after tomorrow".
func (r *reader) baseDay() (d day, ok bool) {
	ok = r.try(func() bool {
		if r.any("from", "after", "on") == "" {
			return false
		}
		if r.words("tomorrow") {
			d = inDays(1)
			return true
		}
		d, ok = r.weekday()
		return ok
	})
	return d, ok
}

// amount reads a number with its unit. article is set if "the" came before, which means one.
func (r *reader) amount(article bool) (o offset, ok bool) {
	switch {
	case r.any("half an hour", "half hour", "a half hour", "half of an hour") != "":
		return offset{halves: 60, unit: "minute"}, true
	case r.any("three quarters of an hour") != "":
		return offset{halves: 90, unit: "minute"}, true
	case r.any("a quarter of an hour", "quarter of an hour", "a quarter hour") != "":
		return offset{halves: 30, unit: "minute"}, true
	case r.any("half a day", "half day") != "":
		return offset{halves: 24, unit: "hour"}, true
	}
	n, counted := r.count()
	if !counted && !article {
		return o, false
	}
	if !counted {
		n = 1
	}
	halves := 2 * n
	if r.words("and a half") {
		halves++
	}
	unit := r.unit()
	if unit == "" {
		return o, false
	}
	if r.words("and a half") {
		halves++
	}
	if more, ok := r.orMore(); ok {
		halves = 2 * more
	}
	if unit == "fortnight" {
		halves, unit = 2*halves, "week"
	}
	return offset{halves: halves, unit: unit}, halves%2 == 0 || unit == "hour" || unit == "minute"
}

// orMore reads the later bound behind a unit: "an hour or two".
func (r *reader) orMore() (n int, ok bool) {
	ok = r.try(func() bool {
		if !r.words("or") {
			return false
		}
		n, ok = r.number()
		return ok && r.boundary()
	})
	return n, ok
}

// count reads a number of units; of two bounds it is the later one. A couple may become three.
func (r *reader) count() (n int, ok bool) {
	switch {
	case r.any("a couple of", "a couple", "couple of", "a few", "few", "the next few", "next few") != "":
		return 3, true
	case r.any("a", "an") != "":
		return 1, true
	}
	if n, ok = r.number(); !ok {
		return 0, false
	}
	r.try(func() bool {
		if r.any("or", "to", "maybe") == "" {
			return false
		}
		last, ok := r.number()
		if ok && last >= n {
			n = last
		}
		return ok
	})
	return n, n <= 365
}

// unit reads a unit of time in the singular.
func (r *reader) unit() string {
	if r.any("business", "working") != "" && strings.HasPrefix(r.peek(0), "day") {
		r.at++
		return "business day"
	}
	switch strings.TrimSuffix(strings.TrimSuffix(r.peek(0), "'s"), "s") {
	case "minute", "min":
		r.at++
		return "minute"
	case "hour", "day", "week", "month", "fortnight":
		r.at++
		return strings.TrimSuffix(strings.TrimSuffix(r.peek(-1), "'s"), "s")
	}
	return ""
}

// after returns the time some units after from, whose date is today. For days and longer units it is the end of the day. Business days
// leave out Saturday and Sunday.
func (o offset) after(from, today time.Time) (time.Time, bool) {
	n, zone := o.halves/2, from.Location()
	if o.base != nil {
		base, ok := o.base.date(today)
		if !ok {
			return time.Time{}, false
		}
		today = base
	}
	switch o.unit {
	case "minute":
		return from.Add(time.Duration(o.halves) * time.Minute / 2), true
	case "hour":
		return from.Add(time.Duration(o.halves) * time.Hour / 2), true
	case "day":
		return endOf(today.AddDate(0, 0, n), zone), true
	case "business day":
		return endOf(addBusinessDays(today, n), zone), true
	case "week":
		return endOf(today.AddDate(0, 0, 7*n), zone), true
	}
	return endOf(today.AddDate(0, n, 0), zone), true
}

// addBusinessDays returns the day n business days later, at most a year.
func addBusinessDays(from time.Time, n int) time.Time {
	for n = min(n, 260); n > 0; {
		from = from.AddDate(0, 0, 1)
		if d := from.Weekday(); d != time.Saturday && d != time.Sunday {
			n--
		}
	}
	return from
}
