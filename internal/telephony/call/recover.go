package call

import (
	"context"
	"database/sql"
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
	open, err := s.interruptedCalls(ctx, s.cfg.Node)
	if err != nil {
		return 0, fmt.Errorf("recover calls: %w", err)
	}
	open = slices.DeleteFunc(open, func(e Ended) bool { return carried(e.Org, e.ID) })
	for _, e := range open {
		if err := s.endInterrupted(ctx, e, lastAlive); err != nil {
			return 0, err
		}
	}
	return len(open), nil
}

// CloseLost closes the calls of another node that is lost, and returns how many. They end with node_crash at the time when the
// node was last alive. Each is closed under guard, which begins its transaction. Recordings stay in processing, with
// the error node_lost, until the node comes back, because it has their files.
func (s *Service) CloseLost(ctx context.Context, node string, lastAlive time.Time,
	guard func(context.Context, func(context.Context, db.Querier) error) error) (int, error) {
	open, err := s.interruptedCalls(ctx, node)
	if err != nil {
		return 0, fmt.Errorf("find calls of node %s: %w", node, err)
	}
	for i, e := range open {
		if err := guard(ctx, func(ctx context.Context, _ db.Querier) error { return s.endInterrupted(ctx, e, lastAlive) }); err != nil {
			return i, err
		}
	}
	return len(open), nil
}

// endInterrupted ends a call that a crash cut.
func (s *Service) endInterrupted(ctx context.Context, e Ended, lastAlive time.Time) error {
	e.At = latest(lastAlive, e.StartedAt, e.AnsweredAt)
	e.Outcome = Outcome{Reason: "node_crash", HangupBy: "system"}
	return s.End(ctx, e)
}

// EndedOf returns those of the calls that have ended according to the database.
func (s *Service) EndedOf(ctx context.Context, ids []string) (ended []string, err error) {
	for part := range slices.Chunk(ids, 200) {
		// tenant: a node asks for the calls that it carries, of all organisations
		text, args := db.Where(`SELECT id FROM calls WHERE ended_at IS NOT NULL`).In("id", part).SQL()
		rows, err := s.cfg.DB.Read(ctx).Query(ctx, text, args...)
		if err != nil {
			return nil, fmt.Errorf("find ended calls: %w", err)
		}
		if ended, err = appendIDs(ended, rows); err != nil {
			return nil, err
		}
	}
	return ended, nil
}

func appendIDs(ids []string, rows *sql.Rows) ([]string, error) {
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
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

func (s *Service) interruptedCalls(ctx context.Context, node string) ([]Ended, error) {
	// tenant: recovery of everything that a node held
	const q = `SELECT org_id, id, source, direction, from_number, to_number, started_at, answered_at, held_since, hold_seconds, recording_id
		FROM calls WHERE node = $1 AND ended_at IS NULL`
	rows, err := s.cfg.DB.Read(ctx).Query(ctx, q, node)
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
