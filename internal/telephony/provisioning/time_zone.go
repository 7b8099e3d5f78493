package provisioning

import (
	"fmt"
	"strings"
	"time"

	"soniq/internal/platform/clock/localday"
)

// zoneRules holds the rules of a time zone in one year: the offsets from UTC, and the changes to and from daylight
// saving.
type zoneRules struct {
	standard, summer int // seconds east of UTC
	names            [2]string
	start, end       transition // of daylight saving; both zero: there is none
}

// transition is a change to or from daylight saving: the n-th weekday of a month (5: the last), at a time of day in
// the offset before it.
type transition struct {
	month   time.Month
	week    int
	weekday time.Weekday
	seconds int // after midnight
}

// zoneRulesOf returns the rules for the year of now. If the zone does not change exactly twice in that year, it is
// treated as having no daylight saving.
func zoneRulesOf(zone *time.Location, now time.Time) zoneRules {
	from := localday.Date{Year: now.In(zone).Year(), Month: time.January, Day: 1}.Start(zone)
	name, offset := from.Zone()
	c := zoneRules{standard: offset, summer: offset, names: [2]string{name, name}}
	var found []time.Time
	for t := from; len(found) < 3; {
		_, next := t.ZoneBounds()
		if next.IsZero() || next.In(zone).Year() > from.Year() {
			break
		}
		found = append(found, next)
		t = next
	}
	if len(found) != 2 {
		_, c.standard = now.In(zone).Zone()
		c.names[0], _ = now.In(zone).Zone()
		c.summer = c.standard
		return c
	}
	return c.withTransitions(found[0].In(zone), found[1].In(zone))
}

// withTransitions sets both changes. In the southern hemisphere the year begins with daylight saving.
func (c zoneRules) withTransitions(first, second time.Time) zoneRules {
	name, offset := first.Zone()
	if offset > c.standard {
		c.summer, c.names[1] = offset, name
		c.start, c.end = transitionAt(first, c.standard), transitionAt(second, c.summer)
		return c
	}
	c.summer, c.standard, c.names = c.standard, offset, [2]string{name, c.names[0]}
	c.start, c.end = transitionAt(second, c.standard), transitionAt(first, c.summer)
	return c
}

// transitionAt returns a time as a rule. before is the offset from UTC in seconds until then.
func transitionAt(t time.Time, before int) transition {
	w := t.In(time.FixedZone("", before))
	week := (w.Day()-1)/7 + 1
	if w.AddDate(0, 0, 7).Month() != w.Month() {
		week = 5
	}
	return transition{w.Month(), week, w.Weekday(), w.Hour()*3600 + w.Minute()*60 + w.Second()}
}

func (c zoneRules) hasDST() bool { return c.standard != c.summer }

// posix returns the zone in the form of IEEE Std 1003.1 §8.3, such as CET-1CEST,M3.5.0,M10.5.0/3.
func (c zoneRules) posix() string {
	text := posixName(c.names[0]) + posixOffset(-c.standard)
	if !c.hasDST() {
		return text
	}
	text += posixName(c.names[1])
	if c.summer != c.standard+3600 {
		text += posixOffset(-c.summer)
	}
	for _, at := range []transition{c.start, c.end} {
		text += fmt.Sprintf(",M%d.%d.%d", at.month, at.week, at.weekday)
		if at.seconds != 7200 {
			text += "/" + posixOffset(at.seconds)
		}
	}
	return text
}

func posixName(name string) string {
	if strings.ContainsAny(name, "+-0123456789") {
		return "<" + name + ">"
	}
	return name
}

func posixOffset(seconds int) string {
	sign := ""
	if seconds < 0 {
		sign, seconds = "-", -seconds
	}
	if seconds%3600 == 0 {
		return fmt.Sprintf("%s%d", sign, seconds/3600)
	}
	return fmt.Sprintf("%s%d:%02d", sign, seconds/3600, seconds%3600/60)
}

// offsetHours returns an offset in the notation of phones: +1, -3:30 or 0.
func offsetHours(seconds int) string {
	if seconds > 0 {
		return "+" + posixOffset(seconds)
	}
	return posixOffset(seconds)
}
