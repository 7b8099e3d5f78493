// Package localday divides time into the days of a time zone. Clocks go forward and back at midnight in some zones, and dates were left
// out. Therefore no other package computes where a day begins.
//
// Days ascend: each begins at the first moment of its date and ends where the next begins. If clocks go back over midnight, the time
// that shows the old date once more belongs to the new day. A date that a zone left out has no day.
package localday

import "time"

// Date is a date of the calendar.
type Date struct {
	Year  int
	Month time.Month
	Day   int
}

// widest is more than the difference of any zone from UTC.
const widest = 26 * time.Hour

// DateOf returns the date of the day that contains t. A zone of nil is UTC.
func DateOf(t time.Time, zone *time.Location) Date {
	d := shown(in(t, zone))
	for next := d.Add(1); !next.Start(zone).After(t); next = d.Add(1) {
		d = next
	}
	return d
}

// in returns a time in a zone; nil is UTC.
func in(t time.Time, zone *time.Location) time.Time {
	if zone == nil {
		return t.UTC()
	}
	return t.In(zone)
}

// shown returns the date that a time has in its zone.
func shown(t time.Time) Date {
	y, m, d := t.Date()
	return Date{y, m, d}
}

// Add returns the date n days later. Days are normalised as by time.Date, so that Date{2026, 2, 0} is the end of January.
func (d Date) Add(n int) Date { return shown(d.noon(n)) }

// Weekday returns the day of the week.
func (d Date) Weekday() time.Weekday { return d.noon(0).Weekday() }

func (d Date) noon(later int) time.Time {
	return time.Date(d.Year, d.Month, d.Day+later, 12, 0, 0, 0, time.UTC)
}

// Start returns the first moment of a date. If the zone left the date out, it is that of the next date.
func (d Date) Start(zone *time.Location) time.Time { return d.At(0, zone) }

// At returns the first moment at which clocks show some minutes after midnight of a date, or a later time if they skip that one.
func (d Date) At(minutes int, zone *time.Location) time.Time {
	wall := time.Date(d.Year, d.Month, d.Day, 0, minutes, 0, 0, time.UTC)
	from := wall.Add(-widest)
	for {
		at := in(from, zone)
		_, offset := at.Zone()
		_, until := at.ZoneBounds()
		if first := wall.Add(-time.Duration(offset) * time.Second); until.IsZero() || first.Before(until) {
			if first.Before(from) {
				first = from
			}
			return in(first, zone)
		}
		from = until
	}
}

// Start returns the beginning of the day that contains t.
func Start(t time.Time, zone *time.Location) time.Time { return DateOf(t, zone).Start(zone) }

// End returns the beginning of the day after the one that contains t.
func End(t time.Time, zone *time.Location) time.Time { return DateOf(t, zone).Add(1).Start(zone) }

// Parse reads a time as RFC 3339, or as a date, which stands for its first moment in the zone.
func Parse(text string, zone *time.Location) (t time.Time, ok bool) {
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, true
	}
	t, err := time.Parse(time.DateOnly, text)
	return shown(t).Start(zone), err == nil
}
