package localday

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"
)

// zoneNames are the names of all IANA zones.
//
//go:embed testdata/zones.txt
var zoneNames string

// eachZone calls a function with every zone and the changes of its clocks. Names that stand for the same clocks since 1970 count once.
func eachZone(t *testing.T, f func(t *testing.T, zone *time.Location, changes []time.Time)) {
	t.Helper()
	seen := map[string]bool{}
	for _, name := range strings.Fields(zoneNames) {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		var changes []time.Time
		at := time.Date(1969, 12, 1, 0, 0, 0, 0, time.UTC).In(zone)
		_, offset := at.Zone()
		key := fmt.Sprint(offset)
		for {
			if _, at = at.ZoneBounds(); at.IsZero() || at.Year() > 2037 {
				break
			}
			_, offset := at.Zone()
			key += fmt.Sprint(" ", at.Unix(), offset)
			changes = append(changes, at)
		}
		if !seen[key] {
			seen[key] = true
			t.Run(name, func(t *testing.T) { f(t, zone, changes) })
		}
	}
	if len(seen) < 250 {
		t.Errorf("only %d zones", len(seen))
	}
}

func (d Date) before(e Date) bool { return d.noon(0).Before(e.noon(0)) }

// https://github.com/Restcomm/Restcomm-Connect/issues/1703
// https://github.com/keen/keen-js/issues/261
func TestDays_AscendAndBeginAtFirstMoment(t *testing.T) {
	t.Parallel()
	eachZone(t, func(t *testing.T, zone *time.Location, changes []time.Time) {
		// Days near a change of the clocks, and the first days of all months. Between changes an hour is as any other.
		dates := map[Date]bool{}
		for year := 1970; year <= 2037; year++ {
			for month := time.January; month <= time.December; month++ {
				dates[Date{year, month, 1}] = true
			}
		}
		for _, x := range changes {
			for n := -3; n <= 3; n++ {
				dates[shown(x).Add(n)] = true
			}
		}
		for d := range dates {
			checkDay(t, d, zone, changes)
		}
	})
}

func checkDay(t *testing.T, d Date, zone *time.Location, changes []time.Time) {
	t.Helper()
	start := d.Start(zone)
	if first := firstMoment(d, zone, changes); !start.Equal(first) {
		t.Fatalf("%v begins at %v, its first moment is %v", d, start, first)
	}
	leftOut := shown(start) != d
	if next := d.Add(1).Start(zone); leftOut != next.Equal(start) || next.Before(start) {
		t.Fatalf("%v begins at %v, the next day at %v", d, start, next)
	}
	if leftOut {
		return
	}
	end := End(start, zone)
	if !end.After(start) {
		t.Fatalf("%v ends at %v", d, end)
	}
	for _, at := range []time.Time{start, start.Add(end.Sub(start) / 2), end.Add(-1)} {
		if DateOf(at, zone) != d || !Start(at, zone).Equal(start) || !End(at, zone).Equal(end) {
			t.Fatalf("%v is in %v, from %v to %v; want %v, from %v to %v", at, DateOf(at, zone), Start(at, zone),
				End(at, zone), d, start, end)
		}
	}
	if read, ok := Parse(d.noon(0).Format(time.DateOnly), zone); !ok || !read.Equal(start) {
		t.Fatalf("%v is read as %v", d, read)
	}
}

// firstMoment searches the first moment with a date or a later one: clocks only go ahead between two changes.
func firstMoment(d Date, zone *time.Location, changes []time.Time) time.Time {
	from, to := d.noon(-2), d.noon(2)
	ends := []time.Time{from}
	for _, x := range changes {
		if x.After(from) && x.Before(to) {
			ends = append(ends, x)
		}
	}
	ends = append(ends, to)
	for i := 1; i < len(ends); i++ {
		low, high := ends[i-1], ends[i].Add(-time.Second)
		if shown(high.In(zone)).before(d) {
			continue
		}
		for low.Before(high) {
			middle := low.Add(high.Sub(low) / 2).Truncate(time.Second)
			if shown(middle.In(zone)).before(d) {
				low = middle.Add(time.Second)
			} else {
				high = middle
			}
		}
		return low
	}
	return to
}

func TestSteps_AscendAndContainTheirTimes(t *testing.T) {
	t.Parallel()
	eachZone(t, func(t *testing.T, zone *time.Location, changes []time.Time) {
		for _, x := range changes {
			checkSteps(t, "hour", x.Add(-30*time.Hour), 60, zone)
			checkSteps(t, "day", x.Add(-60*time.Hour), 5, zone)
			checkSteps(t, "week", x.Add(-10*24*time.Hour), 3, zone)
			checkSteps(t, "month", x.Add(-40*24*time.Hour), 3, zone)
		}
	})
}

func checkSteps(t *testing.T, step string, from time.Time, n int, zone *time.Location) {
	t.Helper()
	longest := map[string]time.Duration{"hour": 2 * time.Hour, "day": 49 * time.Hour, "week": 8 * 24 * time.Hour, "month": 32 * 24 * time.Hour}[step]
	at := StepStart(from, step, zone)
	if at.After(from) || from.Sub(at) > longest {
		t.Fatalf("the %s with %v begins at %v", step, from, at)
	}
	for range n {
		next := NextStep(at, step, zone)
		if d := next.Sub(at); d <= 0 || d > longest {
			t.Fatalf("the %s behind %v begins at %v", step, at, next)
		}
		for _, inside := range []time.Time{at, at.Add(next.Sub(at) / 2), next.Add(-1)} {
			if got := StepStart(inside, step, zone); !got.Equal(at) || !NextStep(inside, step, zone).Equal(next) {
				t.Fatalf("the %s with %v is from %v to %v; want %v to %v", step, inside, got, NextStep(inside, step, zone), at, next)
			}
		}
		at = next
	}
}

func TestStart_KnownDays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, date, want string }{
		{"America/Santiago", "2026-09-06", "2026-09-06T01:00:00-03:00"}, // forward at midnight
		{"America/Havana", "2026-03-08", "2026-03-08T01:00:00-04:00"},
		{"Africa/Cairo", "2026-04-24", "2026-04-24T01:00:00+03:00"},
		{"America/Havana", "2026-11-01", "2026-11-01T00:00:00-04:00"}, // back to midnight: it comes twice
		{"Asia/Amman", "2021-10-29", "2021-10-29T00:00:00+03:00"},
		{"America/Santiago", "2026-04-05", "2026-04-05T00:00:00-04:00"}, // back from midnight
		{"America/St_Johns", "2010-11-07", "2010-11-07T00:00:00-02:30"}, // back a minute after midnight
		{"Pacific/Apia", "2011-12-30", "2011-12-31T00:00:00+14:00"},     // left out
		{"UTC", "2026-01-01", "2026-01-01T00:00:00Z"},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		if at, ok := Parse(c.date, zone); !ok || at.Format(time.RFC3339) != c.want {
			t.Errorf("%s in %s begins at %s, want %s", c.date, c.zone, at.Format(time.RFC3339), c.want)
		}
	}
	if at := Start(time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), nil); at.Format(time.RFC3339Nano) != "2026-01-02T00:00:00Z" {
		t.Error(at)
	}
}
