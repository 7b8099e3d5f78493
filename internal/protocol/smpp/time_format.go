package smpp

import (
	"fmt"
	"strconv"
	"time"
)

// ParseTime parses a time of a PDU (§7.1.1): relative to now if it ends with R, else absolute, with an offset from
// UTC in quarters of an hour.
func ParseTime(text string, now time.Time) (time.Time, error) {
	wrong := fmt.Errorf("smpp: %q is no time", text)
	if len(text) != 16 {
		return time.Time{}, wrong
	}
	var n [8]int // year, month, day, hour, minute, second, tenth, quarters
	for i, cut := 0, 0; i < len(n); i++ {
		width := 2
		if i == 6 {
			width = 1
		}
		v, err := strconv.ParseUint(text[cut:cut+width], 10, 8)
		if err != nil {
			return time.Time{}, wrong
		}
		n[i], cut = int(v), cut+width
	}
	quarters := time.Duration(n[7]) * 15 * time.Minute
	switch text[15] {
	case 'R':
		return now.AddDate(n[0], n[1], n[2]).Add(time.Duration(n[3])*time.Hour + time.Duration(n[4])*time.Minute +
			time.Duration(n[5])*time.Second), nil
	case '+':
		quarters = -quarters
	case '-':
	default:
		return time.Time{}, wrong
	}
	t := time.Date(2000+n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], n[6]*1e8, time.UTC)
	if n[1] < 1 || n[1] > 12 || t.Day() != n[2] || n[3] > 23 || n[4] > 59 || n[5] > 59 || n[7] > 48 {
		return time.Time{}, wrong
	}
	return t.Add(quarters), nil
}

// FormatTime formats an absolute time, in UTC.
func FormatTime(t time.Time) string { return t.UTC().Format("060102150405") + "000+" }
