package org

import (
	"testing"
	"time"
)

// Hours over midnight are two intervals. One that ends before it begins is refused, so that it is not closed without a word:
// https://github.com/keephq/keep/issues/6780, https://github.com/bokmann/business_time/issues/227,
// https://github.com/lennym/moment-business-time/issues/34, https://github.com/chatwoot/chatwoot/issues/5254.
func TestHours_OverMidnight(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	night := Hours{Timezone: "America/New_York", Weekly: Week{Fri: []Interval{{"20:00", "24:00"}}, Sat: []Interval{{"00:00", "04:00"}}},
		Exceptions: []HoursException{{Date: "2026-12-25", Closed: true}}}
	if wrong := night.Violations("hours"); len(wrong) > 0 {
		t.Fatal(wrong)
	}
	for at, want := range map[string]bool{
		"2026-11-27 19:59": false, "2026-11-27 20:00": true, "2026-11-27 23:59": true, "2026-11-28 00:00": true, "2026-11-28 03:59": true,
		"2026-11-28 04:00": false, "2026-12-25 21:00": false, "2026-12-26 01:00": true, // the exception is for its date only
		"2026-03-07 03:00": true, "2026-10-31 03:30": true,
	} {
		moment, err := time.ParseInLocation("2006-01-02 15:04", at, zone)
		if err != nil {
			t.Fatal(err)
		}
		if open, _ := night.At(moment.UTC(), time.UTC); open != want {
			t.Errorf("%s: open %v", at, open)
		}
	}
	backwards := Hours{Weekly: Week{Mon: []Interval{{"20:00", "08:00"}}, Tue: []Interval{{"09:00", "09:00"}}}}
	if wrong := backwards.Violations("hours"); len(wrong) != 2 || wrong[0].Code != "out_of_order" || wrong[1].Code != "out_of_order" {
		t.Errorf("got %v", wrong)
	}
}
