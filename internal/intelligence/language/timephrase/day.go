package timephrase

import (
	"slices"
	"strconv"
	"time"
)

// day is the date that an expression names. The zero day is the day on which it was said.
type day struct {
	kind string // today, named, or empty
	of   func(from time.Time) (time.Time, bool)
}

func (d day) date(from time.Time) (time.Time, bool) {
	if d.of == nil {
		return from, true
	}
	return d.of(from)
}

// named returns a day some days after another.
func named(of func(from time.Time) (time.Time, bool)) day { return day{"named", of} }

// inDays returns the day n days later.
func inDays(n int) day {
	return named(func(from time.Time) (time.Time, bool) { return from.AddDate(0, 0, n), true })
}

// dayPrepositions stand before a day as a time limit.
var dayPrepositions = []string{"no later than", "not later than", "by", "on", "until", "till", "before", "at", "for", "in time for"}

// day reads a day with its part: "tomorrow morning", "by the end of next week", "on the third of March". behind is set if a clock time was
// read before, behind which a day needs no preposition.
func (r *reader) day(behind bool) (d day, part string, ok bool) {
	ok = r.try(func() bool {
		preposition := r.any(dayPrepositions...) != ""
		for _, read := range []func() (day, bool){r.relativeDay, r.period, r.calendarDate, r.weekday} {
			at := r.at
			if d, ok = read(); ok {
				part = r.partOfDay()
				return true
			}
			r.at = at
		}
		d, ok = r.dayOfMonth()
		return ok && (preposition || behind)
	})
	return d, part, ok
}

// partOfDay reads the part of a day behind it: "morning", "in the evening".
func (r *reader) partOfDay() string {
	if r.peek(-1) == "tonight" {
		return "night"
	}
	if part := r.daypart(); part != "" {
		return part
	}
	return r.clockPart()
}

// relativeDay reads "today", "tomorrow", "the day after tomorrow", "this afternoon".
func (r *reader) relativeDay() (d day, ok bool) {
	switch {
	case r.any("the day after tomorrow", "day after tomorrow") != "":
		return inDays(2), true
	case r.any("tomorrow week", "a week tomorrow", "a week from tomorrow") != "":
		return inDays(8), true
	case r.any("a week today", "today week", "a week from today") != "":
		return inDays(7), true
	case r.words("tomorrow"):
		return inDays(1), true
	case r.any("today", "right now", "right away", "straight away", "end of day", "the end of the day", "end of the day",
		"the end of today", "end of today", "the end of day", "close of business", "end of business", "the close of business",
		"the end of business") != "":
		return day{kind: "today"}, true
	case r.words("tonight"): // partOfDay returns its night
		return day{kind: "today"}, true
	case r.peek(0) == "this" && slices.Contains(dayParts, r.peek(1)):
		r.at++
		return day{kind: "today"}, true
	}
	return d, false
}

// period reads a week, weekend, month or year, which end with their last day.
func (r *reader) period() (d day, ok bool) {
	end := r.any("the end of the", "the end of", "end of the", "end of") != ""
	switch {
	case r.any("next week", "following week") != "" || end && r.words("next business week"):
		if r.peek(0) != "" {
			if wd, ok := r.weekdayOfWeek(1); ok {
				return wd, true
			}
		}
		return endOfWeek(1), true
	case r.any("the week after next", "week after next") != "":
		return endOfWeek(2), true
	case r.words("this week"), end && r.any("week", "this week", "business week") != "":
		return endOfWeek(0), true
	case r.any("next month") != "":
		return endOfMonth(1), true
	case r.words("this month"), end && r.any("month", "this month") != "":
		return endOfMonth(0), true
	case r.any("this weekend", "the weekend", "over the weekend") != "" && !end:
		return endOfWeek(0), true
	case r.words("this year"), end && r.any("year", "this year") != "":
		return named(func(from time.Time) (time.Time, bool) {
			return time.Date(from.Year(), 12, 31, 0, 0, 0, 0, from.Location()), true
		}), true
	case end:
		if d, ok := r.monthEnd(); ok {
			return d, true
		}
		return r.weekdayOrTomorrow()
	}
	return d, false
}

// monthEnd reads the month of "the end of March".
func (r *reader) monthEnd() (d day, ok bool) {
	m, ok := r.index(months)
	return named(func(from time.Time) (time.Time, bool) {
		year := from.Year()
		if time.Month(m) < from.Month() {
			year++
		}
		return time.Date(year, time.Month(m)+1, 0, 0, 0, 0, 0, from.Location()), true
	}), ok
}

// weekdayOrTomorrow reads the day of "the end of Thursday".
func (r *reader) weekdayOrTomorrow() (d day, ok bool) {
	if r.words("tomorrow") {
		return inDays(1), true
	}
	return r.weekday()
}

func endOfWeek(weeks int) day {
	return named(func(from time.Time) (time.Time, bool) {
		return from.AddDate(0, 0, (7-int(from.Weekday()))%7+7*weeks), true
	})
}

func endOfMonth(later int) day {
	return named(func(from time.Time) (time.Time, bool) {
		return time.Date(from.Year(), from.Month()+time.Month(later)+1, 0, 0, 0, 0, 0, from.Location()), true
	})
}

// mondayIndex numbers the days of a week from Monday, 0, to Sunday, 6.
func mondayIndex(weekday int) int { return (weekday + 6) % 7 }

// weekdayOfWeek reads a weekday and returns that of the week some weeks later.
func (r *reader) weekdayOfWeek(weeks int) (d day, ok bool) {
	r.any("on")
	w, ok := r.index(weekdays)
	return inWeek(w, weeks), ok
}

func inWeek(weekday, weeks int) day {
	return named(func(from time.Time) (time.Time, bool) {
		return from.AddDate(0, 0, 7*weeks+mondayIndex(weekday)-mondayIndex(int(from.Weekday()))), true
	})
}

// weekday reads "Thursday", "next Monday", "Tuesday next week", "Friday week". A weekday behind an article or a possessive is no time:
// "your Monday appointment".
func (r *reader) weekday() (d day, ok bool) {
	if !r.followsPreposition() && slices.Contains([]string{"the", "a", "your", "my", "our", "his", "her", "their", "that"}, r.peek(-1)) {
		return d, false
	}
	lead := r.any("the coming", "this coming", "coming", "this", "next", "the")
	w, ok := r.index(weekdays)
	if !ok {
		return d, false
	}
	return weekdayOf(w, lead, r.any("week after next", "the week after next", "next week", "of next week", "the following week", "week",
		"after next")), true
}

// followsPreposition reports whether a preposition of a day stands before the next token or before the article there.
func (r *reader) followsPreposition() bool {
	return slices.Contains([]string{"by", "on", "until", "till", "before", "for"}, r.peek(-1))
}

// weekdayOf returns a weekday with the words before and behind it. The next Friday is that of next week; in a week whose Friday is still to
// come it may be either, and is none.
func weekdayOf(w int, lead, tail string) day {
	return named(func(from time.Time) (time.Time, bool) {
		days := (w - int(from.Weekday()) + 7) % 7
		if days == 0 && lead != "this" {
			days = 7
		}
		inNextWeek := 7 + mondayIndex(w) - mondayIndex(int(from.Weekday()))
		switch tail {
		case "next week", "of next week":
			return from.AddDate(0, 0, inNextWeek), true
		case "week":
			return from.AddDate(0, 0, days+7), true
		case "week after next", "the week after next":
			return from.AddDate(0, 0, inNextWeek+7), true
		case "after next", "the following week":
			return from, false
		}
		return from.AddDate(0, 0, days), lead != "next" || days == inNextWeek
	})
}

// calendarDate reads "the third of March", "March 3rd, 2027", "2027-03-03".
func (r *reader) calendarDate() (d day, ok bool) {
	if date, err := time.Parse(time.DateOnly, r.peek(0)); err == nil {
		r.at++
		return onDate(date.Year(), int(date.Month()), date.Day()), true
	}
	if _, ok := r.index(weekdays); ok { // "Monday the third of March"
		r.any(",")
	}
	r.any("the")
	var month, of int
	if of, ok = r.anyOrdinal(true); ok {
		r.any("of")
		if month, ok = r.index(months); !ok {
			return d, false
		}
	} else {
		if month, ok = r.index(months); !ok {
			return d, false
		}
		r.any("the")
		if of, ok = r.anyOrdinal(true); !ok {
			return d, false
		}
	}
	return onDate(r.year(), month, of), true
}

// anyOrdinal reads an ordinal, or a cardinal number up to 31 if cardinals is set.
func (r *reader) anyOrdinal(cardinals bool) (n int, ok bool) {
	if n, ok = r.ordinal(); ok || !cardinals {
		return n, ok
	}
	at := r.at
	if n, ok = r.number(); ok && n > 0 && n < 32 {
		return n, true
	}
	r.at = at
	return 0, false
}

// year reads a year in digits; 0 if there is none.
func (r *reader) year() (year int) {
	r.try(func() bool {
		r.any(",")
		n, err := strconv.Atoi(r.peek(0))
		if err != nil || n < 1900 || n > 2200 {
			return false
		}
		r.at++
		year = n
		return true
	})
	return year
}

// onDate returns a date; without a year, 0, the next one. A date that does not exist is none.
func onDate(year, month, of int) day {
	return named(func(from time.Time) (time.Time, bool) {
		y := year
		if y == 0 {
			y = from.Year()
			if month < int(from.Month()) || month == int(from.Month()) && of < from.Day() {
				y++
			}
		}
		date := time.Date(y, time.Month(month), of, 0, 0, 0, 0, from.Location())
		return date, date.Day() == of
	})
}

// dayOfMonth reads "the fifteenth".
func (r *reader) dayOfMonth() (d day, ok bool) {
	if !r.words("the") {
		return d, false
	}
	of, ok := r.ordinal()
	if !ok {
		return d, false
	}
	later := 0
	if r.any("of next month") != "" {
		later = 1
	} else if r.any("of this month") == "" && r.ordinalOfThing() {
		return d, false
	}
	return named(func(from time.Time) (time.Time, bool) {
		month := from.Month() + time.Month(later)
		if later == 0 && of < from.Day() {
			month++
		}
		date := time.Date(from.Year(), month, of, 0, 0, 0, 0, from.Location())
		return date, date.Day() == of
	}), true
}

// ordinalOfThing reports whether an ordinal counts something other than days: "on the second floor".
func (r *reader) ordinalOfThing() bool { return !r.boundary() }

// boundary reports whether the next token ends an expression: a sign, or a word that no number stands before.
func (r *reader) boundary() bool {
	w := r.peek(0)
	return w == "" || !letter(w[0]) && (w[0] < '0' || w[0] > '9') && w != "%" && w != "$" || boundaryWords[w]
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' }
