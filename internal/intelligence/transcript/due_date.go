package transcript

import (
	"time"

	"soniq/internal/intelligence/language/timephrase"
	"soniq/internal/platform/db"
)

// setDueTimes sets DueAt of the action items from their words. from is the start of the call, in the time zone of the
// speakers. Words without a certain time have none.
func (n *Note) setDueTimes(from time.Time) {
	for i := range n.ActionItems {
		item := &n.ActionItems[i]
		if item.Due == nil {
			continue
		}
		if at, ok := timephrase.Resolve(*item.Due, from); ok {
			item.DueAt = db.At(at)
		}
	}
}
