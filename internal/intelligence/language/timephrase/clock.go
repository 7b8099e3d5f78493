package timephrase

import (
	"slices"
	"strconv"
	"strings"
)

// clock is a time of day as it was said.
type clock struct {
	set          bool
	hour, minute int
	half         string // am, pm or empty
	of24         bool   // the hour is one of 24
	ranged       bool   // "between" came before
}

// told reports whether a time of day says by itself which half of the day it means.
func (c clock) told() bool { return c.half != "" || c.of24 }

// open reports whether neither the time nor a part of the day says which half of the day is meant.
func (c clock) open(part string) bool { return !c.told() && part == "" }

// minutes returns the minutes since midnight. Without a.m., p.m. or a part of the day an hour up to seven is in the afternoon.
func (c clock) minutes(part string) (n int, ok bool) {
	hour := c.hour
	if hour > 24 || c.minute > 59 || hour > 12 && c.half == "am" {
		return 0, false
	}
	afternoon := c.half == "pm" || c.half == "" && (part == "afternoon" || part == "evening" || part == "night" && hour >= 5 ||
		part == "" && hour < 8)
	morning := c.half == "am" || c.half == "" && (part == "morning" || part == "night" && hour < 5)
	switch {
	case c.of24 || hour > 12:
	case afternoon && hour < 12:
		hour += 12
	case hour == 12 && (morning || part == "night"):
		hour = 0
	}
	return 60*hour + c.minute, true
}

// clockPrepositions stand before a time of day.
var clockPrepositions = []string{"no later than", "not later than", "at", "by", "before", "until", "till", "around", "about", "exactly",
	"between", "for"}

// boundaryWords may follow an hour that stands alone. Other words make it a number of something: "at five Elm Street".
var boundaryWords = wordSet(`and or but so to for if when with on in at by the then that this tomorrow today tonight please thanks thank
okay because until unless as from i we you he she it they sharp is no sorry actually rather wait make scratch correction oh not or latest
monday tuesday wednesday thursday friday saturday sunday next through till goodbye bye instead while once after before every each her his
him them your my about into`)

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(text) {
		set[w] = true
	}
	return set
}

// clock reads a time of day: "at three", "3:30 p.m.", "half past four", "ten fifteen". bare allows an hour without a preposition.
func (r *reader) clock(bare bool) (c clock, ok bool) {
	ok = r.try(func() bool {
		ranged := false
		for {
			p := r.any(clockPrepositions...)
			if p == "" {
				break
			}
			bare, ranged = true, ranged || p == "between"
		}
		if c, ok = r.namedHour(); !ok {
			if c, ok = r.fractionHour(); !ok {
				c, ok = r.writtenHour(bare)
			}
		}
		c.set, c.ranged = ok, ranged
		return ok
	})
	return c, ok
}

// namedHour reads noon and midnight.
func (r *reader) namedHour() (c clock, ok bool) {
	r.try(func() bool { return r.any("12", "twelve") != "" && (r.peek(0) == "noon" || r.peek(0) == "midnight") })
	switch {
	case r.any("noon", "midday") != "":
		return clock{hour: 12, half: "pm"}, true
	case r.words("midnight"):
		return clock{hour: 24, of24: true}, true
	}
	return c, false
}

// fractionHour reads "half past four", "a quarter to five", "twenty past three".
func (r *reader) fractionHour() (c clock, ok bool) {
	ok = r.try(func() bool {
		minute, joint := 0, ""
		switch {
		case r.any("half past", "half after") != "":
			minute, joint = 30, "past"
		case r.words("half"):
			minute, joint = 30, "half"
		case r.any("a quarter", "quarter") != "":
			minute, joint = 15, r.any("past", "after", "to", "before", "of", "till")
		default:
			n, ok := r.number()
			if !ok || n > 30 {
				return false
			}
			r.any("minutes", "minute")
			minute, joint = n, r.any("past", "to", "before", "after")
		}
		if joint == "" {
			return false
		}
		hour, ok := r.hour()
		if !ok || joint == "half" && hour > 12 {
			return false
		}
		r.words("o'clock")
		c = clock{hour: hour, minute: minute, half: r.half()}
		if joint == "to" || joint == "before" || joint == "of" || joint == "till" {
			c = c.earlier(minute)
		}
		return true
	})
	return c, ok
}

// earlier returns a full hour less some minutes.
func (c clock) earlier(minutes int) clock {
	c.hour, c.minute = c.hour-1, 60-minutes
	if c.hour == 0 {
		c.hour = 12
	}
	return c
}

// hour reads an hour from 1 to 24.
func (r *reader) hour() (n int, ok bool) {
	at := r.at
	n, ok = r.number()
	if !ok || n < 1 || n > 24 {
		r.at = at
		return 0, false
	}
	return n, true
}

// half reads a.m. or p.m. and the like.
func (r *reader) half() string {
	switch {
	case r.any("a.m.", "a.m", "am", "a m") != "":
		return "am"
	case r.any("p.m.", "p.m", "pm", "p m") != "":
		return "pm"
	}
	return ""
}

// writtenHour reads an hour with minutes, o'clock or a half of the day, or alone.
func (r *reader) writtenHour(bare bool) (c clock, ok bool) {
	if hour, minute, ok := strings.Cut(strings.ReplaceAll(r.peek(0), ".", ":"), ":"); ok && r.peek(0) != "." && r.peek(0) != ":" {
		h, err1 := strconv.Atoi(hour)
		m, err2 := strconv.Atoi(minute)
		if err1 != nil || err2 != nil || h > 24 || m > 59 || len(minute) != 2 {
			return c, false
		}
		colon := strings.Contains(r.peek(0), ":")
		r.at++
		c = clock{hour: h, minute: m, of24: h > 12 || h == 0 || len(hour) == 2 && hour[0] == '0', half: r.half()}
		return c, colon || bare && r.boundary() || c.half != ""
	}
	h, ok := r.hour()
	if !ok {
		return c, false
	}
	if r.any("o'clock", "o clock", "oclock") != "" {
		return clock{hour: h, of24: h > 12, half: r.half()}, true
	}
	if half := r.half(); half != "" {
		return clock{hour: h, half: half}, h <= 12
	}
	if m, ok := r.spokenMinute(); ok {
		return clock{hour: h, minute: m, of24: h > 12, half: r.half()}, bare || r.boundary()
	}
	return clock{hour: h, of24: h > 12}, bare && r.boundary()
}

// spokenMinute reads the minutes behind an hour: "fifteen", "forty five", "oh five", "hundred".
func (r *reader) spokenMinute() (m int, ok bool) {
	ok = r.try(func() bool {
		if r.words("hundred") {
			r.any("hours")
			return true
		}
		zero := r.any("oh", "o", "zero") != ""
		digits := r.peek(0)
		m, ok = r.number()
		if !ok || m > 59 || zero == (m >= 10) {
			return false
		}
		return slices.Contains(numberWords, digits) || slices.Contains(tensWords, digits) || len(digits) == 2
	})
	return m, ok
}
