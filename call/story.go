package call

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"soniq/db"
)

// maxStory bounds a story before it is compressed, in bytes of JSON: one that is longer loses its messages, then its last steps.
const maxStory = 4 << 20

// packed is the story as it is kept; nil of none. It is made before the transaction that writes it, which others wait for.
func (s *Service) packed(story *Story) ([]byte, error) {
	if story == nil {
		return nil, nil
	}
	packed, err := story.pack(&s.packers)
	if err != nil {
		return nil, fmt.Errorf("pack story: %w", err)
	}
	return packed, nil
}

// keepStory writes a call's steps and messages, as packed made them. nil leaves what is there.
func (s *Service) keepStory(ctx context.Context, tx db.Querier, org, callID string, packed []byte) error {
	if packed == nil {
		return nil
	}
	const q = `INSERT INTO call_stories (org_id, call_id, story, written_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (org_id, call_id) DO UPDATE SET story = excluded.story, written_at = excluded.written_at`
	if _, err := tx.Exec(ctx, q, org, callID, packed, db.At(s.Now())); err != nil {
		return fmt.Errorf("keep story: %w", err)
	}
	return nil
}

// EndStories adds to the stories of calls that are over, all in one transaction; a story that was erased meanwhile stays so. Writing them twice has the effect of once.
func (s *Service) EndStories(ctx context.Context, all []StoryEnd) error {
	packed := make([][]byte, len(all))
	for i, x := range all {
		var err error
		if packed[i], err = s.packed(&Story{Messages: x.Messages}); err != nil {
			return err
		}
	}
	return s.DB.Tx(ctx, func(tx db.Querier) error {
		const q = `INSERT INTO call_story_ends (org_id, call_id, story, written_at)
			SELECT org_id, call_id, CAST($3 AS BLOB), CAST($4 AS BIGINT) FROM call_stories WHERE org_id = $1 AND call_id = $2
			ON CONFLICT (org_id, call_id) DO UPDATE SET story = excluded.story, written_at = excluded.written_at`
		for i, x := range all {
			if _, err := tx.Exec(ctx, q, x.Org, x.CallID, packed[i], db.At(s.Now())); err != nil {
				return fmt.Errorf("end story of call %s: %w", x.CallID, err)
			}
		}
		return nil
	})
}

func (x Story) pack(packers *sync.Pool) ([]byte, error) {
	plain, err := json.Marshal(x)
	for err == nil && len(plain) > maxStory && len(x.Steps)+len(x.Messages) > 0 {
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
	w := packer(packers, &b)
	defer packers.Put(w)
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// packer is a compressor to b. One is over a megabyte, so they are used again.
func packer(packers *sync.Pool, b *bytes.Buffer) *gzip.Writer {
	if w, ok := packers.Get().(*gzip.Writer); ok {
		w.Reset(b)
		return w
	}
	w, _ := gzip.NewWriterLevel(b, gzip.BestSpeed)
	return w
}

func unpack(packed []byte) (x Story, err error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return x, err
	}
	plain, err := io.ReadAll(io.LimitReader(r, 2*maxStory))
	if err != nil {
		return x, err
	}
	return x, json.Unmarshal(plain, &x)
}

// storyOf is what happened in a call: from the switch while it is in progress, else what was kept; empty where there is none.
func (s *Service) storyOf(ctx context.Context, org, callID string) (x Story, err error) {
	if s.Switch != nil {
		if x, ok := s.Switch.Story(org, callID); ok {
			return x, nil
		}
	}
	return s.keptStory(ctx, org, callID)
}

func (s *Service) keptStory(ctx context.Context, org, callID string) (x Story, err error) {
	const q = `SELECT s.story, e.story FROM call_stories s LEFT JOIN call_story_ends e ON e.org_id = s.org_id AND e.call_id = s.call_id
		WHERE s.org_id = $1 AND s.call_id = $2`
	var packed, rest []byte
	err = s.DB.Read(ctx).QueryRow(ctx, q, org, callID).Scan(&packed, &rest)
	if db.IsNone(err) {
		return Story{}, nil
	}
	if err == nil {
		x, err = unpack(packed)
	}
	if err == nil && len(rest) > 0 {
		var end Story
		end, err = unpack(rest)
		x.Messages = append(x.Messages, end.Messages...)
	}
	if err != nil {
		return x, fmt.Errorf("read story of call %s: %w", callID, err)
	}
	return x, nil
}

// SweepStories removes stories written before a time, a batch at a time, and returns how many.
func (s *Service) SweepStories(ctx context.Context, before time.Time) (gone int64, err error) {
	// tenant: retention is swept over all organisations
	const ends = `DELETE FROM call_story_ends WHERE (org_id, call_id) IN
		(SELECT org_id, call_id FROM call_story_ends WHERE written_at < $1 LIMIT 500)`
	if _, err := s.sweep(ctx, ends, before); err != nil {
		return 0, err
	}
	// tenant: retention is swept over all organisations
	const stories = `DELETE FROM call_stories WHERE (org_id, call_id) IN
		(SELECT org_id, call_id FROM call_stories WHERE written_at < $1 LIMIT 500)`
	return s.sweep(ctx, stories, before)
}

// sweep runs a statement, each time in a transaction of its own, until there is nothing left for it to do.
func (s *Service) sweep(ctx context.Context, q string, before time.Time) (gone int64, err error) {
	for n := int64(1); n > 0 && err == nil && ctx.Err() == nil; gone += n {
		n = 0
		err = s.DB.Tx(ctx, func(tx db.Querier) error {
			r, err := tx.Exec(ctx, q, db.At(before))
			if err != nil {
				return fmt.Errorf("sweep stories of calls: %w", err)
			}
			n, err = r.RowsAffected()
			return err
		})
	}
	return gone, err
}
