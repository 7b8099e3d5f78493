package memory

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/observe"
)

// Background re-embedding of passages and facts with a vector of another model, or without one because the server
// failed. Until then they are found by their words only, because vectors of different models are never compared.

const (
	reembedBatch         = 64
	reembedRetryInterval = 10 * time.Minute // after an embedder failed
	reembedInterval      = 6 * time.Hour
)

// Run re-embeds stale entries and builds the database indexes of large organisations, at once and then periodically,
// until ctx ends. Several servers may run it concurrently.
func (s *Service) Run(ctx context.Context, log *slog.Logger) {
	for {
		s.needsEmbedding.Store(false)
		began := time.Now()
		n, err := s.Reembed(ctx)
		if ctx.Err() != nil {
			return
		}
		if n > 0 {
			log.Info("passages embedded again", "passages", n, "model", s.model().Name, "took", time.Since(began).Round(time.Millisecond))
		}
		if err != nil {
			log.Warn("passages not embedded again", "err", err)
			s.needsEmbedding.Store(true)
		}
		if err := s.buildLargeIndexes(ctx); err != nil && ctx.Err() == nil {
			log.Warn("large memories not indexed in the database", "err", err)
		}
		if !s.waitForWork(ctx) {
			return
		}
	}
}

// waitForWork waits for the next run, which is earlier after an embedder failed. It returns false if ctx has ended.
func (s *Service) waitForWork(ctx context.Context) bool {
	tick := time.NewTicker(reembedRetryInterval)
	defer tick.Stop()
	for waited := time.Duration(0); waited < reembedInterval; waited += reembedRetryInterval {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		if s.needsEmbedding.Load() {
			return true
		}
	}
	return true
}

// Reembed embeds all stale facts, and all stale passages within the window, with the current model. It returns how
// many were embedded. After each batch it pauses as long as the batch took.
func (s *Service) Reembed(ctx context.Context) (int, error) {
	facts, err := s.reembedFacts(ctx)
	if s.embedder == nil || err != nil {
		return facts, err
	}
	since := db.At(s.now().Add(-s.window))
	orgs, err := orgsBySize(ctx, s.db.Read(ctx), since)
	if err != nil {
		return 0, fmt.Errorf("find what to embed again: %w", err)
	}
	all := facts
	for _, org := range orgs {
		n, err := s.reembedOrg(ctx, org, since)
		all += n
		if err != nil {
			return all, fmt.Errorf("embed passages of %s again: %w", org, err)
		}
	}
	return all, nil
}

// reembedOrg re-embeds an organisation's passages in the order of their keys. Each gets a new key above all others,
// so that in-memory indexes on every server read it like a new passage.
func (s *Service) reembedOrg(ctx context.Context, org string, since db.Time) (int, error) {
	all, from, until := 0, int64(0), s.newKey()
	for {
		keys, next, err := keysOfOtherModels(ctx, s.db.Read(ctx), org, s.model().Name, from, until, since)
		if err != nil {
			return all, err
		}
		for len(keys) > 0 {
			part := keys[:min(len(keys), reembedBatch)]
			keys = keys[len(part):]
			began := time.Now()
			n, err := s.reembed(ctx, org, part)
			all += n
			if err != nil {
				return all, err
			}
			if !sleepContext(ctx, time.Since(began)) {
				return all, ctx.Err()
			}
		}
		if next == 0 {
			return all, nil
		}
		from = next
	}
}

// sleepContext waits for a duration. It returns false if ctx has ended.
func sleepContext(ctx context.Context, d time.Duration) bool {
	pause := time.NewTimer(d)
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-pause.C:
		return true
	}
}

// keysOfOtherModels reads rowsPerRead passages and returns those of other models. next is the key to continue at, 0
// at the end.
func keysOfOtherModels(ctx context.Context, q db.Querier, org, model string, from, until int64, since db.Time) (keys []int64, next int64,
	err error) {
	const text = `SELECT key, model FROM memory_vectors WHERE org_id = $1 AND key >= $2 AND key < $3 AND +at >= $4 ORDER BY key LIMIT $5`
	rows, err := q.Query(ctx, text, org, from, until, since, rowsPerRead)
	if err != nil {
		return nil, 0, err
	}
	n := 0
	err = scanAll(rows, func(rows *sql.Rows) error {
		var key int64
		var of string
		if err := rows.Scan(&key, &of); err != nil {
			return err
		}
		n, next = n+1, key+1
		if of != model {
			keys = append(keys, key)
		}
		return nil
	})
	if n < rowsPerRead {
		next = 0
	}
	return keys, next, err
}

// staleItem is a passage to embed again.
type staleItem struct {
	row
	id, callID string
	passage
}

// reembed embeds passages and replaces the old ones. Passages that were deleted meanwhile stay deleted.
func (s *Service) reembed(ctx context.Context, org string, keys []int64) (int, error) {
	todo, err := s.passagesOf(ctx, org, keys)
	if err != nil || len(todo) == 0 {
		return 0, err
	}
	texts := make([]string, len(todo))
	for i, p := range todo {
		texts[i] = p.plain
	}
	vectors, err := s.embedder.Embed(ctx, texts)
	if err != nil {
		return 0, err
	}
	m := s.embedder.Model()
	n := 0
	err = s.db.Tx(ctx, func(tx db.Querier) error {
		n = 0
		told := map[string]bool{}
		for i, p := range todo {
			p.vector, p.model = quantise(vectors[i]), m.Name
			done, err := s.replaceVector(ctx, tx, org, p)
			if err != nil {
				return err
			}
			if !done {
				continue
			}
			n++
			if told[p.callID] {
				continue
			}
			told[p.callID] = true
			err = observe.Each(s.embedded, func(o EmbeddingObserver) error { return o.PassagesEmbedded(ctx, tx, org, p.callID, m) })
			if err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}

// passagesOf reads passages with their index rows.
func (s *Service) passagesOf(ctx context.Context, org string, keys []int64) ([]staleItem, error) {
	q := s.db.Read(ctx)
	found := map[int64]*staleItem{}
	err := vectorsByKey(ctx, q, org, keys, func(r row) error {
		found[r.key] = &staleItem{row: r}
		return nil
	})
	if err != nil {
		return nil, err
	}
	const text = `SELECT key, id, call_id, kind, start_ms, end_ms, text FROM memory_items WHERE org_id = $1 AND key IN`
	var out []staleItem
	err = byKeys(ctx, q, text, org, keys, func(rows *sql.Rows) error {
		var p staleItem
		var start, end sql.NullInt64
		if err := rows.Scan(&p.key, &p.id, &p.callID, &p.passage.kind, &start, &end, &p.text); err != nil {
			return err
		}
		f := found[p.key]
		if f == nil || f.id != "" { // byKeys repeats keys to fill up a statement
			return nil
		}
		f.id, f.callID, f.passage = p.id, p.callID, p.passage
		f.startMS, f.endMS, f.plain = int(start.Int64), int(end.Int64), withoutSpeakers(p.passage)
		out = append(out, *f)
		return nil
	})
	return out, err
}

// withoutSpeakers returns the text of a passage without the speakers at the beginnings of its lines.
func withoutSpeakers(p passage) string {
	if p.kind != KindTranscript {
		return p.text
	}
	lines := strings.Split(p.text, "\n")
	for i, l := range lines {
		if _, said, ok := strings.Cut(l, ": "); ok {
			lines[i] = said
		}
	}
	return strings.Join(lines, "\n")
}

// replaceVector replaces a passage by one with a new vector and a new key. done is false if the passage no longer
// exists.
func (s *Service) replaceVector(ctx context.Context, tx db.Querier, org string, p staleItem) (done bool, err error) {
	const q = `DELETE FROM memory_items WHERE org_id = $1 AND key = $2`
	r, err := tx.Exec(ctx, q, org, p.key)
	if err != nil {
		return false, err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return false, err
	}
	p.key = s.newKey()
	if err := insertItem(ctx, tx, org, p.callID, p.id, p.key, p.passage); err != nil {
		return false, err
	}
	return true, insertVector(ctx, tx, org, p.row)
}
