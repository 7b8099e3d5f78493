package transcript

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"soniq/internal/platform/db"
)

// setDueTimes sets DueAt of the action items from their words. from is the start of the call, in the time zone of the
// speakers.
func (n *Note) setDueTimes(from time.Time) {
	for i := range n.ActionItems {
		if item := &n.ActionItems[i]; item.Due != nil {
			if at, ok := dueAt(*item.Due, from); ok {
				item.DueAt = db.At(at)
			}
		}
	}
}

var (
	dueIn      = regexp.MustCompile(`\b(?:in|within)(?: the| about| less than)? ?([a-z0-9]+(?: [a-z]+)??)? (minute|hour|day|week|month)s?\b`)
	dueWeekday = regexp.MustCompile(`\b(monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b`)
	dueDate    = regexp.MustCompile(`\b(\d{4})-(\d\d)-(\d\d)\b`)
	dueClock   = regexp.MustCompile(`\b(?:at|by|before|until) (?:(\d{1,2})(?::(\d\d))?|([a-z]+))(?: ?(a\.?m\.?|p\.?m\.?|in the morning|in the afternoon|in the evening))?(?: |$)`)
	dueEnd     = regexp.MustCompile(`\bend of the (day|week|month)\b`)
)

// dueAt returns the time that English words such as "by Thursday" mean; ok is false if they name none.
func dueAt(words string, from time.Time) (at time.Time, ok bool) {
	text := strings.Join(strings.Fields(strings.ToLower(words)), " ")
	if m := dueIn.FindStringSubmatch(text); m != nil {
		return timeAfter(m[1], m[2], from)
	}
	day, ok := dueDay(text, from)
	hour, told := dueHour(text)
	switch {
	case !ok && !told:
		return time.Time{}, false
	case !ok:
		day = from
	}
	if told {
		at = time.Date(day.Year(), day.Month(), day.Day(), hour/60, hour%60, 0, 0, from.Location())
		if !ok && at.Before(from) {
			at = at.AddDate(0, 0, 1)
		}
		return at, true
	}
	return endOf(day), true
}

// timeAfter returns a time some units later. For days and longer units it is the end of the day. Business days leave out Saturday and Sunday.
func timeAfter(amount, unit string, from time.Time) (time.Time, bool) {
	switch whole, half := strings.CutPrefix(amount, "half"); {
	case half && unit == "hour" && len(whole) <= len(" an"):
		return from.Add(30 * time.Minute), true
	case half && unit == "day":
		return from.Add(12 * time.Hour), true
	case half:
		return time.Time{}, false
	}
	n, ok := smallNumber(amount)
	if !ok {
		return time.Time{}, false
	}
	switch unit {
	case "minute":
		return from.Add(time.Duration(n) * time.Minute), true
	case "hour":
		return from.Add(time.Duration(n) * time.Hour), true
	case "day":
		if strings.HasSuffix(amount, "business") || strings.HasSuffix(amount, "working") {
			return endOf(addBusinessDays(from, n)), true
		}
		return endOf(from.AddDate(0, 0, n)), true
	case "week":
		return endOf(from.AddDate(0, 0, 7*n)), true
	}
	return endOf(from.AddDate(0, n, 0)), true
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

// dueDay returns the day named in a text.
func dueDay(text string, from time.Time) (time.Time, bool) {
	if m := dueDate.FindString(text); m != "" {
		d, err := time.ParseInLocation(time.DateOnly, m, from.Location())
		return d, err == nil
	}
	if m := dueWeekday.FindString(text); m != "" {
		days := (weekdays[m] - int(from.Weekday()) + 7) % 7
		if days == 0 {
			days = 7
		}
		if strings.Contains(text, "next week") {
			days = 7 + (weekdays[m]+6)%7 - (int(from.Weekday())+6)%7
		}
		return from.AddDate(0, 0, days), true
	}
	untilSunday := (7 - int(from.Weekday())) % 7
	if m := dueEnd.FindStringSubmatch(text); m != nil {
		switch m[1] {
		case "week":
			return from.AddDate(0, 0, untilSunday), true
		case "month":
			return time.Date(from.Year(), from.Month()+1, 0, 0, 0, 0, 0, from.Location()), true
		}
		return from, true
	}
	switch {
	case strings.Contains(text, "tomorrow"):
		return from.AddDate(0, 0, 1), true
	case containsAny(text, "today", "tonight", "this evening", "this afternoon", "this morning", "right now", "right away"):
		return from, true
	case strings.Contains(text, "next week"):
		return from.AddDate(0, 0, untilSunday+7), true
	case strings.Contains(text, "this week"):
		return from.AddDate(0, 0, untilSunday), true
	case strings.Contains(text, "next month"):
		return time.Date(from.Year(), from.Month()+2, 0, 0, 0, 0, 0, from.Location()), true
	case strings.Contains(text, "this month"):
		return time.Date(from.Year(), from.Month()+1, 0, 0, 0, 0, 0, from.Location()), true
	}
	return time.Time{}, false
}

// dueHour returns the time of day named in a text, in minutes. Hours up to seven without a.m. or p.m. are in the
// afternoon.
func dueHour(text string) (minutes int, ok bool) {
	if strings.Contains(text, "noon") && !strings.Contains(text, "afternoon") {
		return 12 * 60, true
	}
	for _, word := range []string{" by ", " at ", " before ", " until "} { // "by Thursday at two": a match for each
		text = strings.ReplaceAll(text, word, " "+word)
	}
	for _, m := range dueClock.FindAllStringSubmatch(text, -1) {
		if minutes, ok = hourOf(m); ok {
			return minutes, true
		}
	}
	return 0, false
}

// hourOf parses a match of dueClock.
func hourOf(m []string) (minutes int, ok bool) {
	if m[1]+m[3] == "" {
		return 0, false
	}
	hour, known := smallNumber(m[1] + m[3])
	if m[3] != "" {
		hour = slices.Index(numberWords, m[3])
		known = hour > 0
	}
	if !known || hour > 23 {
		return 0, false
	}
	minute, _ := strconv.Atoi(m[2])
	half := strings.ReplaceAll(m[4], ".", "")
	switch {
	case hour < 12 && (half == "pm" || strings.HasSuffix(half, "afternoon") || strings.HasSuffix(half, "evening") || half == "" &&
		hour < 8):
		hour += 12
	case hour == 12 && (half == "am" || strings.HasSuffix(half, "morning")):
		hour = 0
	}
	return 60*hour + minute%60, true
}

func endOf(day time.Time) time.Time {
	return time.Date(day.Year(), day.Month(), day.Day(), 23, 59, 59, 0, day.Location())
}

func containsAny(text string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}

var weekdays = map[string]int{"sunday": 0, "monday": 1, "tuesday": 2, "wednesday": 3, "thursday": 4, "friday": 5, "saturday": 6}

// numberWords are the numbers that are used for hours and days.
var numberWords = strings.Fields("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty")

// smallNumber parses "twenty five", "an", "a few", "12" or an empty text, which means one.
func smallNumber(text string) (int, bool) {
	switch text {
	case "", "a", "an", "the", "next", "business", "working", "one business", "a business", "a working":
		return 1, true
	case "a couple", "a few", "couple", "few": // a couple may become three
		return 3, true
	case "thirty":
		return 30, true
	case "forty":
		return 40, true
	}
	text = strings.TrimSuffix(strings.TrimSuffix(text, " business"), " working")
	if n, err := strconv.Atoi(text); err == nil {
		return n, n >= 0 && n <= 365
	}
	tens, ones, two := strings.Cut(text, " ")
	for i, w := range numberWords {
		switch {
		case w == text:
			return i, true
		case two && w == ones && tens == "twenty" && i < 10:
			return 20 + i, true
		case two && w == ones && tens == "thirty" && i < 10:
			return 30 + i, true
		}
	}
	return 0, false
}
