package partner_test

import (
	"fmt"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

// call inserts a call with its start (RFC 3339) and its talk time.
func (h *fixture) call(org, direction, at string, talk time.Duration, answered bool) {
	h.t.Helper()
	began, err := time.Parse(time.RFC3339, at)
	must(h.t, err)
	var answer, missed any
	if answered {
		answer = db.At(began)
	} else {
		missed = "no_answer"
	}
	const text = `INSERT INTO calls (org_id, id, direction, status, stage, source, from_number, to_number, started_at, answered_at,
			ended_at, ring_seconds, queue_seconds, hold_seconds, talk_seconds, total_seconds, missed_reason, recording_state,
			recording_ready, consent, tags, notes_count, metadata, sandbox, node)
		VALUES ($1, $2, $3, 'completed', '', '', '', '', $4, $5, $6, 0, 0, 0, $7, 0, $8, '', FALSE, '', '[]', 0, '{}', FALSE, '')`
	must(h.t, h.d.Tx(ctx, func(tx db.Querier) error {
		_, err := tx.Exec(ctx, text, org, db.NewID("call"), direction, db.At(began), answer, db.At(began.Add(talk)), int(talk.Seconds()),
			missed)
		return err
	}))
}

func TestStats_ByDaysOfChildTimezone(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id, other := h.createChild(`,"country":"JP"`), h.createChild("")     // nine hours ahead
		h.call(id, "inbound", "2026-11-17T14:00:00Z", 10*time.Minute, true)  // the 17th in Japan
		h.call(id, "inbound", "2026-11-17T14:05:00Z", 0, false)              // while the first runs
		h.call(id, "outbound", "2026-11-17T14:06:00Z", 9*time.Minute, true)  // while both do: the second ended at once
		h.call(id, "outbound", "2026-11-17T15:30:00Z", 90*time.Second, true) // the 18th in Japan
		h.call(id, "internal", "2026-11-19T16:00:00Z", 20*time.Second, true) // the 20th
		h.call(id, "inbound", "2026-11-01T00:00:00Z", time.Hour, true)       // before
		h.call(other, "inbound", "2026-11-18T00:00:00Z", time.Hour, true)
		a := h.do("GET", "/partners/"+id+"/stats?since=2026-11-16T15:00:00Z&until=2026-11-20T15:00:00Z", nil).Want(200)
		for path, want := range map[string]any{"calls.total": 5.0, "calls.inbound": 2.0, "calls.outbound": 2.0, "calls.answered": 4.0, "calls.missed": 1.0,
			"calls.minutes": 21.0, "peak_concurrent_calls": 2.0, "users.total": 1.0, "users.active": 0.0, "numbers": 0.0, "sms.sent": 0.0,
			"period.timezone": "Asia/Tokyo", "series.0.total": 3.0, "series.0.minutes": 19.0, "series.1.total": 1.0, "series.2.total": 0.0,
			"series.3.total": 1.0, "series.4": nil, "series.1.start": "2026-11-17T15:00:00.000Z"} {
			if got := a.At(path); got != want {
				t.Errorf("%s is %v, want %v", path, got, want)
			}
		}
		for interval, n := range map[string]int{"hour": 96, "week": 1, "month": 1} {
			a := h.do("GET", "/partners/"+id+"/stats?since=2026-11-16T15:00:00Z&until=2026-11-20T15:00:00Z&interval="+interval, nil).Want(200)
			series := a.At("series").([]any)
			sum := 0.0
			for _, b := range series {
				sum += b.(map[string]any)["total"].(float64)
			}
			if len(series) != n || sum != 5 {
				t.Errorf("by %s: %d intervals with %v calls, want %d with 5", interval, len(series), sum, n)
			}
		}
		for _, bad := range []string{"?since=2026-11-20&until=2026-11-19", "?since=2024-01-01&until=2026-01-01", "?since=2026-01-01&until=2026-03-01&interval=hour"} {
			h.do("GET", "/partners/"+id+"/stats"+bad, nil).Want(400).Refused("invalid_query")
		}
	})
}

// https://github.com/Restcomm/Restcomm-Connect/issues/1703
func TestStats_ClocksForwardAtMidnight(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	id := h.createChild(`,"country":"CL"`)
	a := h.do("GET", "/partners/"+id+"/stats?since=2026-09-05T04:00:00Z&until=2026-09-08T03:00:00Z", nil).Want(200)
	for i, want := range []any{"2026-09-05T04:00:00.000Z", "2026-09-06T04:00:00.000Z", "2026-09-07T03:00:00.000Z", nil} {
		if got := a.At(fmt.Sprintf("series.%d.start", i)); got != want {
			t.Errorf("day %d begins at %v, want %v", i, got, want)
		}
	}
}
