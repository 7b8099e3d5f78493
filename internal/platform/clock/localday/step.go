package localday

import "time"

// StepStart returns the start of the hour, day, week or month that contains t. Weeks begin on Monday.
func StepStart(t time.Time, step string, zone *time.Location) time.Time {
	if step == "hour" {
		return hourStart(in(t, zone))
	}
	return stepDate(DateOf(t, zone), step).Start(zone)
}

// NextStep returns the start of the next step after the one that contains t.
func NextStep(t time.Time, step string, zone *time.Location) time.Time {
	if step == "hour" {
		return nextHour(in(t, zone))
	}
	d := stepDate(DateOf(t, zone), step)
	for {
		switch step {
		case "week":
			d = d.Add(7)
		case "month":
			d = Date{d.Year, d.Month + 1, 1}.Add(0)
		default:
			d = d.Add(1)
		}
		if next := d.Start(zone); next.After(t) {
			return next
		}
	}
}

// stepDate returns the first date of the step with a date.
func stepDate(d Date, step string) Date {
	switch step {
	case "week":
		return d.Add(-((int(d.Weekday()) + 6) % 7))
	case "month":
		return Date{d.Year, d.Month, 1}
	}
	return d
}

// hourStart returns the start of the hour that contains t. An hour begins at minute 0, and where a change of the clocks skips minute 0.
func hourStart(t time.Time) time.Time {
	for {
		full := t.Add(-sinceFull(t))
		changed, _ := t.ZoneBounds()
		if changed.IsZero() || !full.Before(changed) {
			return full
		}
		if startsHour(changed) {
			return changed
		}
		t = changed.Add(-1)
	}
}

// nextHour returns the start of the next hour after t.
func nextHour(t time.Time) time.Time {
	for {
		full := t.Add(time.Hour - sinceFull(t))
		_, changes := t.ZoneBounds()
		if changes.IsZero() || full.Before(changes) {
			return full
		}
		if startsHour(changes) {
			return changes
		}
		t = changes
	}
}

// sinceFull returns the time since minute 0 by the clocks.
func sinceFull(t time.Time) time.Duration {
	return time.Duration(t.Minute())*time.Minute + time.Duration(t.Second())*time.Second + time.Duration(t.Nanosecond())
}

// startsHour reports whether an hour begins where the clocks change.
func startsHour(change time.Time) bool {
	before := change.Add(-1)
	return sinceFull(change) == 0 || clockHour(change).After(clockHour(before))
}

// clockHour returns the hour that clocks show, as a time in UTC.
func clockHour(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), 0, 0, 0, time.UTC)
}
