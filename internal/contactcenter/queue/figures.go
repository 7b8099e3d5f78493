package queue

import (
	"context"
	"encoding/json"
	"fmt"

	"soniq/internal/platform/db"
)

// Figures counts the callers who entered a queue in a period. All reports of queues use these definitions
// (docs/analytics.md). A caller counts by the time of entry, once for each entry. A callback is the entry of the
// caller who asked for it; the call that is placed for it is no caller.
type Figures struct {
	Offered     int // all who entered
	Answered    int // connected with an agent, also by a callback
	InTime      int // of Answered, those within the service level of the queue
	Abandoned   int // hung up while waiting, without those within the short abandon time of the queue
	Overflowed  int // sent on, or out of time
	Callbacks   int // asked to be called back
	AverageTalk int // seconds with an agent, of answered entries that have ended
	AverageWait int // seconds until the answer, of Answered
}

// Served returns the number of callers of which the answer rate and the service level are shares: those who were
// answered, and those who gave up.
func (f Figures) Served() int { return f.Answered + f.Abandoned }

// NamedFigures holds the figures of one queue.
type NamedFigures struct {
	QueueID, Name string
	Figures
}

// FiguresByQueue returns the figures of all queues, also removed ones, that callers entered. choose restricts the
// entries, e, and their calls.
func FiguresByQueue(ctx context.Context, q db.Querier, org string, choose func(*db.Filter) *db.Filter) ([]NamedFigures, error) {
	const text = `SELECT DISTINCT k.id, k.name, k.settings FROM queue_entries e JOIN queues k ON k.org_id = e.org_id AND k.id = e.queue_id
		LEFT JOIN calls ON calls.org_id = e.org_id AND calls.id = e.call_id WHERE e.org_id = $1`
	statement, args := choose(db.Where(text, org)).SQL()
	var queues []Queue
	err := db.ForEach(ctx, q, "find queues of callers", statement, args, func(scan func(...any) error) error {
		k := Queue{OrgID: org, Settings: defaults()}
		var settings string
		if err := scan(&k.ID, &k.Name, &settings); err != nil {
			return err
		}
		queues = append(queues, k)
		return json.Unmarshal([]byte(settings), &queues[len(queues)-1].Settings)
	})
	if err != nil {
		return nil, err
	}
	all := make([]NamedFigures, len(queues))
	for i, k := range queues {
		f, err := figuresOf(ctx, q, k, choose)
		if err != nil {
			return nil, err
		}
		all[i] = NamedFigures{k.ID, k.Name, f}
	}
	return all, nil
}

// figuresOf returns the figures of a queue.
func figuresOf(ctx context.Context, q db.Querier, k Queue, choose func(*db.Filter) *db.Filter) (f Figures, err error) {
	const text = `SELECT COUNT(*), COUNT(e.connected_at), COUNT(CASE WHEN e.connected_at - e.entered_at <= $4 THEN 1 END),
			COUNT(CASE WHEN e.status = 'abandoned' AND e.exited_at - e.entered_at > $3 THEN 1 END),
			COUNT(CASE WHEN e.status IN ('overflowed', 'timed_out') THEN 1 END), COUNT(e.callback),
			COALESCE(AVG(e.talk_seconds), 0), COALESCE(AVG((e.connected_at - e.entered_at) / 1000000), 0)
		FROM queue_entries e LEFT JOIN calls ON calls.org_id = e.org_id AND calls.id = e.call_id WHERE e.org_id = $1 AND e.queue_id = $2`
	chosen := choose(db.Where(text, k.OrgID, k.ID, int64(k.ShortAbandon)*1_000_000, int64(k.ServiceLevel)*1_000_000))
	statement, args := chosen.SQL()
	var talk, wait float64
	row := q.QueryRow(ctx, statement, args...)
	if err := row.Scan(&f.Offered, &f.Answered, &f.InTime, &f.Abandoned, &f.Overflowed, &f.Callbacks, &talk, &wait); err != nil {
		return f, fmt.Errorf("count callers: %w", err)
	}
	f.AverageTalk, f.AverageWait = int(talk+0.5), int(wait+0.5)
	return f, nil
}
