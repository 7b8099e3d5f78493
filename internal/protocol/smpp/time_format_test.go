package smpp

import (
	"testing"
	"time"
)

func TestParseTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"260301140000000+": now.Add(2 * time.Hour),
		"260301140000004+": now.Add(time.Hour),
		"260301140000004-": now.Add(3 * time.Hour),
		"000001020000000R": now.AddDate(0, 0, 1).Add(2 * time.Hour),
	} {
		if got, err := ParseTime(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s is %v (%v), not %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "260301140000000", "260301140000000x", "26x301140000000+", "260231140000000+", "261301140000000+", "260301250000000+"} {
		if got, err := ParseTime(text, now); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
	if got := FormatTime(now); got != "260301120000000+" {
		t.Errorf("written as %s", got)
	}
}
