package call

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"soniq/internal/platform/db"
)

// RecoverRecording turns the unfinished file that a crash left into a recording at path (the final name). It returns
// an error if there is no usable file.
type RecoverRecording func(path string) (Audio, error)

// Recover closes the calls and recordings that this node left open when it crashed. Calls end with node_crash at
// lastAlive, the time at which the node was last alive. Recordings are finished with the data on disk. It returns how
// many calls it closed. Calls that carried reports as resumed are skipped, with their recordings; a nil carried skips
// none.
func (s *Service) Recover(ctx context.Context, lastAlive time.Time, salvage RecoverRecording, then OnRecorded, carried func(org, id string) bool) (int, error) {
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
	return len(open), s.recoverRecordings(ctx, salvage, then, carried)
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
		if err := rows.Scan(&e.Org, &e.ID, &e.Source, &e.Direction, &e.From, &e.To, &started, &answered, &held, &hold, &recording); err != nil {
			return nil, err
		}
		e.StartedAt, e.AnsweredAt, e.Recording = started.Time, answered.Time, string(recording)
		e.Hold = time.Duration(hold) * time.Second
		all = append(all, e)
	}
	return all, rows.Err()
}

type interruptedRecording struct{ org, id, callID, blob, status string }

func (s *Service) recoverRecordings(ctx context.Context, salvage RecoverRecording, then OnRecorded, carried func(org, id string) bool) error {
	open, err := s.interruptedRecordings(ctx)
	if err != nil {
		return fmt.Errorf("recover recordings: %w", err)
	}
	var failed error
	for _, r := range open {
		if carried(r.org, r.callID) && r.status != "processing" {
			continue
		}
		path, err := s.Files.Path(r.blob)
		if err != nil {
			return err
		}
		a, err := salvage(path)
		if err != nil {
			a = Audio{Err: fmt.Errorf("the audio file could not be recovered: %w", err)}
		}
		failed = errors.Join(failed, s.Recorded(ctx, r.org, r.callID, r.id, a, then))
	}
	return failed
}

func (s *Service) interruptedRecordings(ctx context.Context) ([]interruptedRecording, error) {
	// tenant: recovery of everything this node held
	const q = `SELECT org_id, id, call_id, blob, status FROM recordings WHERE node = $1 AND status IN ('recording', 'paused', 'processing')`
	rows, err := s.DB.Read(ctx).Query(ctx, q, s.Node)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []interruptedRecording
	for rows.Next() {
		var r interruptedRecording
		if err := rows.Scan(&r.org, &r.id, &r.callID, &r.blob, &r.status); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
}
