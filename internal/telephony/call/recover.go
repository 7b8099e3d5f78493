package call

import (
	"context"
	"fmt"
	"slices"
	"time"

	"soniq/internal/platform/db"
)

// Recover closes the calls that this node left open when it crashed. They end with node_crash at lastAlive, the time at
// which the node was last alive. It returns how many calls it closed. Calls that carried reports as resumed are
// skipped; a nil carried skips none. The recovery of their recordings comes after it.
func (s *Service) Recover(ctx context.Context, lastAlive time.Time, carried func(org, id string) bool) (int, error) {
	if carried == nil {
		carried = func(string, string) bool { return false }
	}
	open, err := s.interruptedCalls(ctx)
	if err != nil {
		return 0, fmt.Errorf("recover calls: %w", err)
	}
	open = slices.DeleteFunc(open, func(e Ended) bool { return carried(e.Org, e.ID) })
	for _, e := range open {
		e.At = latest(lastAlive, e.StartedAt, e.AnsweredAt)
		e.Outcome = Outcome{Reason: "node_crash", HangupBy: "system"}
		if err := s.End(ctx, e); err != nil {
			return 0, err
		}
	}
	return len(open), nil
}

func latest(times ...time.Time) time.Time {
	last := times[0]
	for _, t := range times[1:] {
		if t.After(last) {
			last = t
		}
	}
	return last
}

func (s *Service) interruptedCalls(ctx context.Context) ([]Ended, error) {
	// tenant: recovery of everything this node held
	const q = `SELECT org_id, id, source, direction, from_number, to_number, started_at, answered_at, held_since, hold_seconds, recording_id
		FROM calls WHERE node = $1 AND ended_at IS NULL`
	rows, err := s.DB.Read(ctx).Query(ctx, q, s.Node)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []Ended
	for rows.Next() {
		var e Ended
		var started, answered, held db.Time
		var recording db.Null
		var hold int
		if err := rows.Scan(&e.Org, &e.ID, &e.Source, &e.Direction, &e.From, &e.To, &started, &answered, &held, &hold,
			&recording); err != nil {
			return nil, err
		}
		e.StartedAt, e.AnsweredAt, e.Recording = started.Time, answered.Time, string(recording)
		e.Hold = time.Duration(hold) * time.Second
		all = append(all, e)
	}
	return all, rows.Err()
}
