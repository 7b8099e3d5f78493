package memory

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"soniq/internal/platform/db"
)

// This file embeds again what another model embedded, or none, because its server did not answer. Until then such passages are found by
// their words only: vectors of different models are never compared.

const (
	reembedAtOnce = 64
	reembedSoon   = 10 * time.Minute // after an embedder failed
	reembedEvery  = 6 * time.Hour
)

// Run embeds again what has to be, at once and from time to time, until ctx ends. Several nodes may do so side by side.
func (s *Service) Run(ctx context.Context, log *slog.Logger) {
	for {
		s.behind.Store(false)
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
			s.behind.Store(true)
		}
		if err := s.shareLarge(ctx); err != nil && ctx.Err() == nil {
			log.Warn("large memories not indexed in the database", "err", err)
		}
		if !s.waitBehind(ctx) {
			return
		}
	}
}

// waitBehind waits until it is time to look again, sooner where an embedder has failed; false: ctx has ended.
func (s *Service) waitBehind(ctx context.Context) bool {
	tick := time.NewTicker(reembedSoon)
	defer tick.Stop()
	for waited := time.Duration(0); waited < reembedEvery; waited += reembedSoon {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		if s.behind.Load() {
			return true
		}
	}
	return true
}

// Reembed gives all facts, and all passages within the window, vectors of the model in use and returns how many got one. It takes its time:
// as long as it works, it rests.
func (s *Service) Reembed(ctx context.Context) (int, error) {
	facts, err := s.reembedFacts(ctx)
	if s.embedder == nil || err != nil {
		return facts, err
	}
	since := db.At(s.now().Add(-s.window))
	orgs, err := sizes(ctx, s.db.Read(ctx), since)
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

// reembedOrg goes through an organisation's passages in the order of their keys. What it embeds gets a new key, above all others, so that
// indexes in memory, on every node, read it as if it had been learnt just now.
func (s *Service) reembedOrg(ctx context.Context, org string, since db.Time) (int, error) {
	all, from, until := 0, int64(0), s.newKey()
	for {
		keys, next, err := foreignKeys(ctx, s.db.Read(ctx), org, s.model().Name, from, until, since)
		if err != nil {
			return all, err
		}
		for len(keys) > 0 {
			part := keys[:min(len(keys), reembedAtOnce)]
			keys = keys[len(part):]
			began := time.Now()
			n, err := s.reembed(ctx, org, part)
			all += n
			if err != nil {
				return all, err
			}
			if !rest(ctx, time.Since(began)) {
				return all, ctx.Err()
			}
		}
		if next == 0 {
			return all, nil
		}
		from = next
	}
}

// rest waits; false: ctx has ended.
func rest(ctx context.Context, d time.Duration) bool {
	pause := time.NewTimer(d)
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-pause.C:
		return true
	}
}

// foreignKeys looks through rowsPerRead passages for those of another model; next is where to go on, 0 at the end.
func foreignKeys(ctx context.Context, q db.Querier, org, model string, from, until int64, since db.Time) (keys []int64, next int64, err error) {
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

// again is a passage to be embedded again.
type again struct {
	row
	id, callID string
	passage
}

// reembed embeds some passages and puts them in the place of the old ones. Those that were forgotten meanwhile stay so.
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
			done, err := s.replace(ctx, tx, org, p)
			if err != nil {
				return err
			}
			if !done {
				continue
			}
			n++
			if told[p.callID] || s.embedded == nil {
				continue
			}
			told[p.callID] = true
			if err := s.embedded(ctx, tx, org, p.callID, m); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}

// passagesOf reads passages with what they are found by.
func (s *Service) passagesOf(ctx context.Context, org string, keys []int64) ([]again, error) {
	q := s.db.Read(ctx)
	found := map[int64]*again{}
	err := vectorsByKey(ctx, q, org, keys, func(r row) error {
		found[r.key] = &again{row: r}
		return nil
	})
	if err != nil {
		return nil, err
	}
	const text = `SELECT key, id, call_id, kind, start_ms, end_ms, text FROM memory_items WHERE org_id = $1 AND key IN`
	var out []again
	err = byKeys(ctx, q, text, org, keys, func(rows *sql.Rows) error {
		var p again
		var start, end sql.NullInt64
		if err := rows.Scan(&p.key, &p.id, &p.callID, &p.passage.kind, &start, &end, &p.text); err != nil {
			return err
		}
		f := found[p.key]
		if f == nil || f.id != "" { // keys are repeated to fill a statement up
			return nil
		}
		f.id, f.callID, f.passage = p.id, p.callID, p.passage
		f.startMS, f.endMS, f.plain = int(start.Int64), int(end.Int64), plainOf(p.passage)
		out = append(out, *f)
		return nil
	})
	return out, err
}

// plainOf is a passage without the speakers at the beginnings of its lines.
func plainOf(p passage) string {
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

// replace puts a passage with a new vector in the place of the old one, under a new key; done is false where there is none any more.
func (s *Service) replace(ctx context.Context, tx db.Querier, org string, p again) (done bool, err error) {
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
