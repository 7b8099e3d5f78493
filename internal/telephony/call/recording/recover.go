package recording

import (
	"context"
	"errors"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/telephony/call"
)

type interruptedRecording struct{ org, id, callID, blob, status string }

// Recover finishes the recordings that this node left open when it crashed, with the data on disk. Recordings of calls
// that carried reports as resumed are skipped unless they had stopped; a nil carried skips none. Call it after the
// recovery of the calls.
func (s *Service) Recover(ctx context.Context, salvage call.RecoverRecording, then call.OnRecorded,
	carried func(org, id string) bool) error {
	if carried == nil {
		carried = func(string, string) bool { return false }
	}
	open, err := s.interruptedRecordings(ctx)
	if err != nil {
		return fmt.Errorf("recover recordings: %w", err)
	}
	var failed error
	for _, r := range open {
		if carried(r.org, r.callID) && r.status != "processing" {
			continue
		}
		path, err := s.cfg.Files.Path(r.blob)
		if err != nil {
			return err
		}
		a, err := salvage(path)
		if err != nil {
			a = call.Audio{Err: fmt.Errorf("the audio file could not be recovered: %w", err)}
		}
		failed = errors.Join(failed, s.Recorded(ctx, r.org, r.callID, r.id, a, then))
	}
	return failed
}

// Adopt makes the recordings that another node left open those of this one, which has their files. Recover then finishes them.
func (s *Service) Adopt(ctx context.Context, node string) error {
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		// tenant: everything that a node held
		const q = `UPDATE recordings SET node = $1 WHERE node = $2 AND status IN ('recording', 'paused', 'processing')`
		if _, err := tx.Exec(ctx, q, s.cfg.Node, node); err != nil {
			return fmt.Errorf("adopt recordings of node %s: %w", node, err)
		}
		return nil
	})
}

func (s *Service) interruptedRecordings(ctx context.Context) ([]interruptedRecording, error) {
	// tenant: recovery of everything this node held
	const q = `SELECT org_id, id, call_id, blob, status FROM recordings WHERE node = $1 AND status IN ('recording', 'paused', 'processing')
		AND redaction = ''`
	rows, err := s.cfg.DB.Read(ctx).Query(ctx, q, s.cfg.Node)
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
