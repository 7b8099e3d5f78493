package transcript

import (
	"testing"
	"time"
)

// https://github.com/abritinthebay/datejs/issues/47
func TestSetDueTimes(t *testing.T) {
	t.Parallel()
	said := time.Date(2026, 3, 4, 10, 15, 0, 0, time.FixedZone("here", 2*3600)) // a Wednesday
	due := []string{"the day after tomorrow", "tomorrow at ten fifteen", "on Monday at nine", "at three, no, four", "when it is fixed"}
	var n Note
	for i := range due {
		n.ActionItems = append(n.ActionItems, ActionItem{Due: &due[i]})
	}
	n.setDueTimes(said)
	for i, want := range []string{"2026-03-06 23:59:59", "2026-03-05 10:15:00", "2026-03-09 09:00:00", "2026-03-04 16:00:00", ""} {
		got := ""
		if at := n.ActionItems[i].DueAt; !at.IsZero() {
			got = at.In(said.Location()).Format(time.DateTime)
		}
		if got != want {
			t.Errorf("%q is %q, want %q", due[i], got, want)
		}
	}
}
