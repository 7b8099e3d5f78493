package call

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"soniq/internal/platform/db"
)

// maxTimelineBytes limits the JSON of a timeline before compression. A larger one loses its later messages, half of
// them at a time, then its later entries.
const maxTimelineBytes = 4 << 20

// WriteTimelines stores the timelines of ended calls in one transaction. A timeline that is stored already stays,
// including the empty one of a call that was erased meanwhile.
func (s *Service) WriteTimelines(ctx context.Context, all []CallTimeline) error {
	values := make([]any, 0, 4*len(all))
	for _, x := range all {
		packed, err := x.pack(&s.gzipWriters)
		if err != nil {
			return fmt.Errorf("compress timeline of call %s: %w", x.CallID, err)
		}
		values = append(values, x.Org, x.CallID, packed, db.At(s.Now()))
	}
	written := s.cfg.DB.TxAsync(ctx, func(tx db.Querier) error {
		return db.Bulk(len(all), func(from, to int) error { return insertTimelines(ctx, tx, values[4*from:4*to]) })
	})
	if err := written(); err != nil {
		return fmt.Errorf("write timelines: %w", err)
	}
	return nil
}

func insertTimelines(ctx context.Context, tx db.Querier, values []any) error {
	q := `INSERT INTO call_timelines (org_id, call_id, timeline, written_at)
		SELECT column1, column2, column3, column4 FROM (VALUES ` + db.Values(1, len(values)/4, "", "", "BLOB", "BIGINT") + `) AS v
		WHERE EXISTS (SELECT 1 FROM calls c WHERE c.org_id = column1 AND c.id = column2) ON CONFLICT DO NOTHING`
	_, err := tx.Exec(ctx, q, values...)
	return err
}

// eraseTimeline stores an empty timeline in place of the call's timeline. WriteTimelines does not replace it.
func (s *Service) eraseTimeline(ctx context.Context, tx db.Querier, org, callID string) error {
	nothing, err := Timeline{}.pack(&s.gzipWriters)
	if err != nil {
		return err
	}
	const q = `INSERT INTO call_timelines (org_id, call_id, timeline, written_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (org_id, call_id) DO UPDATE SET timeline = excluded.timeline, written_at = excluded.written_at`
	if _, err := tx.Exec(ctx, q, org, callID, nothing, db.At(s.Now())); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `DELETE FROM call_timeline_ends WHERE org_id = $1 AND call_id = $2`, org, callID)
	return err
}

func (x Timeline) pack(packers *sync.Pool) ([]byte, error) {
	plain, err := json.Marshal(x)
	for err == nil && len(plain) > maxTimelineBytes && len(x.Steps)+len(x.Messages) > 0 {
		if len(x.Messages) > 0 {
			x.Messages = x.Messages[:len(x.Messages)/2]
		} else {
			x.Steps = x.Steps[:len(x.Steps)/2]
		}
		plain, err = json.Marshal(x)
	}
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w := gzipWriter(packers, &b)
	defer packers.Put(w)
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// gzipWriter returns a compressor that writes to b. Compressors are pooled, because each one takes most of a
// megabyte.
func gzipWriter(packers *sync.Pool, b *bytes.Buffer) *gzip.Writer {
	if w, ok := packers.Get().(*gzip.Writer); ok {
		w.Reset(b)
		return w
	}
	w, _ := gzip.NewWriterLevel(b, gzip.BestSpeed)
	return w
}

func unpackTimeline(packed []byte) (x Timeline, err error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return x, err
	}
	plain, err := io.ReadAll(io.LimitReader(r, 2*maxTimelineBytes))
	if err != nil {
		return x, err
	}
	return x, json.Unmarshal(plain, &x)
}

// timelineOf returns the timeline of a call: from the switch while the call is in progress, else from the database.
// It is empty if there is none.
func (s *Service) timelineOf(ctx context.Context, org, callID string) (x Timeline, err error) {
	if s.Switch != nil {
		if x, ok := s.Switch.Timeline(org, callID); ok {
			return x, nil
		}
	}
	return s.storedTimeline(ctx, org, callID)
}

func (s *Service) storedTimeline(ctx context.Context, org, callID string) (x Timeline, err error) {
	const q = `SELECT s.timeline, e.timeline FROM call_timelines s
		LEFT JOIN call_timeline_ends e ON e.org_id = s.org_id AND e.call_id = s.call_id
		WHERE s.org_id = $1 AND s.call_id = $2`
	var packed, rest []byte
	err = s.cfg.DB.Read(ctx).QueryRow(ctx, q, org, callID).Scan(&packed, &rest)
	if db.IsNone(err) {
		return Timeline{}, nil
	}
	if err == nil {
		x, err = unpackTimeline(packed)
	}
	if err == nil && len(rest) > 0 {
		var end Timeline
		end, err = unpackTimeline(rest)
		x.Messages = append(x.Messages, end.Messages...)
	}
	if err != nil {
		return x, fmt.Errorf("read timeline of call %s: %w", callID, err)
	}
	return x, nil
}

// SweepTimelines deletes timelines written before a time, in batches, and returns how many.
func (s *Service) SweepTimelines(ctx context.Context, before time.Time) (gone int64, err error) {
	// tenant: one sweep applies the retention of all organisations
	const ends = `DELETE FROM call_timeline_ends WHERE (org_id, call_id) IN
		(SELECT org_id, call_id FROM call_timeline_ends WHERE written_at < $1 LIMIT 500)`
	if _, err := s.sweep(ctx, ends, before); err != nil {
		return 0, err
	}
	// tenant: one sweep applies the retention of all organisations
	const timelines = `DELETE FROM call_timelines WHERE (org_id, call_id) IN
		(SELECT org_id, call_id FROM call_timelines WHERE written_at < $1 LIMIT 500)`
	return s.sweep(ctx, timelines, before)
}

// sweep repeats a statement, each time in its own transaction, until it affects no row.
func (s *Service) sweep(ctx context.Context, q string, before time.Time) (gone int64, err error) {
	for n := int64(1); n > 0 && err == nil && ctx.Err() == nil; gone += n {
		n = 0
		err = s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
			r, err := tx.Exec(ctx, q, db.At(before))
			if err != nil {
				return fmt.Errorf("sweep timelines of calls: %w", err)
			}
			n, err = r.RowsAffected()
			return err
		})
	}
	return gone, err
}
