package analytics

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

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
	id                     string
	queue, agent, number   string // agent: of the record of one person only
	from, to               string
	ring, wait, talk, hold int64
	shares                 []share
}

// share is the part of a call that one person served. The seconds of all parts are together at most the call's.
type share struct {
	agent      string
	talk, hold int64
}

const recordColumns = `id, started_at, direction, status, missed_reason, answered_at, queue_id, number_id, from_number, to_number,
	ring_seconds, queue_seconds, talk_seconds, hold_seconds`

func scanRecord(rows *sql.Rows) (r record, err error) {
	var answered db.Time
	var queue, number db.Null
	err = rows.Scan(&r.id, &r.at, &r.direction, &r.status, &r.missed, &answered, &queue, &number, &r.from, &r.to, &r.ring, &r.wait,
		&r.talk, &r.hold)
	r.answered, r.queue, r.number = !answered.IsZero(), string(queue), string(number)
	return r, err
}

// eachRecord calls do for each record of the table calls that matches a filter.
func (s *Service) eachRecord(ctx context.Context, org string, filter func(*db.Filter) *db.Filter, do func(record)) error {
	shares, err := s.sharesOf(ctx, org, filter)
	if err != nil {
		return err
	}
	const columns = `SELECT ` + recordColumns + ` FROM calls WHERE org_id = $1 AND ended_at IS NOT NULL`
	text, args := filter(db.Where(columns, org)).SQL()
	rows, err := s.cfg.DB.Read(ctx).Query(ctx, text, args...)
	if err != nil {
		return fmt.Errorf("read calls to count: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		r, err := scanRecord(rows)
		if err != nil {
			return fmt.Errorf("read calls to count: %w", err)
		}
		r.shares = shares[r.id]
		do(r)
	}
	return rows.Err()
}

// sharesOf returns who served the calls that match a filter, by call.
func (s *Service) sharesOf(ctx context.Context, org string, filter func(*db.Filter) *db.Filter) (map[string][]share, error) {
	const chosen = `SELECT id FROM calls WHERE org_id = $1 AND ended_at IS NOT NULL`
	text, args := filter(db.Where(chosen, org)).SQL()
	const parts = `SELECT call_id, user_id, SUM(talk_seconds), SUM(hold_seconds) FROM legs
		WHERE org_id = $1 AND talk_seconds IS NOT NULL AND user_id IS NOT NULL AND call_id IN (`
	rows, err := s.cfg.DB.Read(ctx).Query(ctx, parts+text+`) GROUP BY call_id, user_id`, args...)
	if err != nil {
		return nil, fmt.Errorf("read who served calls: %w", err)
	}
	defer rows.Close()
	all := map[string][]share{}
	for rows.Next() {
		var call string
		var p share
		if err := rows.Scan(&call, &p.agent, &p.talk, &p.hold); err != nil {
			return nil, fmt.Errorf("read who served calls: %w", err)
		}
		all[call] = append(all[call], p)
	}
	return all, rows.Err()
}

// parts returns the records to count if calls are chosen or grouped by dimensions: one for each person, with the
// person's seconds, if one of the dimensions is the agent; else the call itself.
func (r record) parts(dimensions ...string) []record {
	if !slices.Contains(dimensions, ByAgent) {
		return []record{r}
	}
	all := make([]record, len(r.shares))
	for i, p := range r.shares {
		all[i] = r
		all[i].agent, all[i].talk, all[i].hold, all[i].shares = p.agent, p.talk, p.hold, []share{p}
	}
	return all
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
