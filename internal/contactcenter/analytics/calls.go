package analytics

import (
	"context"
	"database/sql"
	"fmt"

	"soniq/internal/platform/db"
)

// serviceLevelSeconds is the wait in which a queued call should be answered.
const serviceLevelSeconds = 20

// record holds the columns of a call that are counted.
type record struct {
	at                     db.Time
	direction, status      string
	missed                 db.Null
	answered               bool
	queue, agent, number   string
	from, to               string
	ring, wait, talk, hold int64
}

const recordColumns = `started_at, direction, status, missed_reason, answered_at, queue_id, agent_id, number_id, from_number, to_number,
	ring_seconds, queue_seconds, talk_seconds, hold_seconds`

func scanRecord(rows *sql.Rows) (r record, err error) {
	var answered db.Time
	var queue, agent, number db.Null
	err = rows.Scan(&r.at, &r.direction, &r.status, &r.missed, &answered, &queue, &agent, &number, &r.from, &r.to, &r.ring, &r.wait,
		&r.talk, &r.hold)
	r.answered, r.queue, r.agent, r.number = !answered.IsZero(), string(queue), string(agent), string(number)
	return r, err
}

// eachRecord calls do for each record that matches a filter.
func (s *Service) eachRecord(ctx context.Context, f *db.Filter, do func(record)) error {
	text, args := f.SQL()
	rows, err := s.DB.Read(ctx).Query(ctx, text, args...)
	if err != nil {
		return fmt.Errorf("read calls to count: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		r, err := scanRecord(rows)
		if err != nil {
			return fmt.Errorf("read calls to count: %w", err)
		}
		do(r)
	}
	return rows.Err()
}

// countsOf returns the counts of one call.
func (s *Service) countsOf(org string, r record) *Counts {
	c := &Counts{Total: 1, Ring: r.ring, Queue: r.wait, Talk: r.talk, Hold: r.hold}
	other := r.from
	switch r.direction {
	case "inbound":
		c.Inbound = 1
	case "outbound":
		c.Outbound, other = 1, r.to
	default:
		c.Internal = 1
	}
	if r.answered {
		c.Answered = 1
	}
	switch {
	case r.missed == "":
	case r.missed == "voicemail":
		c.Missed, c.Voicemail = 1, 1
	case r.missed == "abandoned_in_queue" || r.missed == "abandoned_in_menu":
		c.Missed, c.Abandoned = 1, 1
	default:
		c.Missed = 1
	}
	if r.queue != "" {
		c.Queued = 1
		if r.answered && r.wait <= serviceLevelSeconds {
			c.WithinServiceLevel = 1
		}
	}
	if other != "anonymous" && other != "" {
		c.Callers = callers{s.digest(org, other): 1}
	}
	return c
}

// Dimensions of the stored counts.
const (
	allCalls    = "all"
	ByQueue     = "queue"
	ByAgent     = "agent"
	ByNumber    = "number"
	ByDirection = "direction"
)

// key returns the key of a call in a dimension. ok is false if the call is not counted there.
func (r record) key(dimension string) (key string, ok bool) {
	switch dimension {
	case allCalls:
		return "", true
	case ByQueue:
		return r.queue, r.queue != ""
	case ByAgent:
		return r.agent, r.agent != ""
	case ByNumber:
		return r.number, r.number != ""
	case ByDirection:
		return r.direction, true
	}
	return "", false
}

// columnValue returns the value of a column by which calls are grouped; "" if the call has none.
func (r record) columnValue(name string) string {
	switch name {
	case "queue_id":
		return r.queue
	case "agent_id":
		return r.agent
	case "number_id":
		return r.number
	case "direction":
		return r.direction
	}
	return ""
}

var dimensions = []string{allCalls, ByQueue, ByAgent, ByNumber, ByDirection}
