package memory

import (
	"context"
	"database/sql"
	"fmt"

	"soniq/internal/platform/db"
)

// Search over facts. A fact is indexed like a passage, but belongs to no call.

// factColumns selects rowColumns from facts.
const factColumns = `key, phone, created_at, kind, '', NULL, NULL, model, vector, terms`

// factRow returns the index row of a fact. With a remote model the vector is computed later by Reembed, so that no
// transaction waits for the server.
func (s *Service) factRow(ctx context.Context, text string) row {
	r := row{key: s.newKey(), terms: countTerms(s.lexicon.Terms(text))}
	if !s.model().Builtin {
		s.needsEmbedding.Store(s.embedder != nil)
		return r
	}
	if v, err := s.embedder.Embed(ctx, []string{text}); err == nil {
		r.vector, r.model = quantise(v[0]), s.model().Name
	}
	return r
}

// factsByKey reads the index rows of facts.
func factsByKey(ctx context.Context, q db.Querier, org string, keys []int64, each func(row) error) error {
	const text = `SELECT ` + factColumns + ` FROM memory_facts WHERE org_id = $1 AND key IN`
	return byKeys(ctx, q, text, org, keys, func(rows *sql.Rows) error {
		r, err := scanRow(rows)
		if err != nil {
			return err
		}
		return each(r)
	})
}

// factItems reads facts that have not expired, as results.
func factItems(ctx context.Context, q db.Querier, org string, keys []int64, now db.Time, each func(foundItem)) error {
	const text = `SELECT key, id, text, phone, created_at, expires_at, kind, COALESCE(call_id, ''), contact_id FROM memory_facts WHERE org_id = $1 AND key IN`
	return byKeys(ctx, q, text, org, keys, func(rows *sql.Rows) error {
		f, expires := foundItem{isText: true}, db.Time{}
		if err := rows.Scan(&f.key, &f.id, &f.text, &f.phone, &f.at, &expires, &f.kind, &f.callID, &f.contactID); err != nil {
			return err
		}
		if expires.IsZero() || expires.After(now.Time) {
			each(f)
		}
		return nil
	})
}

// missingKeys returns the keys that are not in found.
func missingKeys[V any](keys []int64, found map[int64]V) (out []int64) {
	if len(found) == len(keys) {
		return nil
	}
	for _, k := range keys {
		if _, ok := found[k]; !ok {
			out = append(out, k)
		}
	}
	return out
}

// staleFact is a fact with a vector of another model, or without one.
type staleFact struct{ org, id, text string }

// reembedFacts embeds stale facts in batches and returns how many there were.
func (s *Service) reembedFacts(ctx context.Context) (all int, err error) {
	for {
		facts, err := s.staleFacts(ctx)
		if err != nil || len(facts) == 0 {
			return all, err
		}
		texts := make([]string, len(facts))
		for i, f := range facts {
			texts[i] = f.text
		}
		vectors := make([][]float32, len(facts))
		if s.embedder != nil {
			if vectors, err = s.embedder.Embed(ctx, texts); err != nil {
				return all, err
			}
		}
		err = s.db.Tx(ctx, func(tx db.Querier) error {
			const q = `UPDATE memory_facts SET key = $3, model = $4, vector = $5, terms = $6 WHERE org_id = $1 AND id = $2`
			for i, f := range facts {
				terms := countTerms(s.lexicon.Terms(f.text))
				if _, err := tx.Exec(ctx, q, f.org, f.id, s.newKey(), s.model().Name, quantise(vectors[i]).bytes(),
					encodeTerms(terms)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return all, err
		}
		all += len(facts)
	}
}

// staleFacts returns a batch of them.
func (s *Service) staleFacts(ctx context.Context) (out []staleFact, err error) {
	// tenant: the facts of all organisations are embedded again in the background
	const text = `SELECT org_id, id, text FROM memory_facts WHERE key IS NULL OR model <> $1 LIMIT $2`
	rows, err := s.db.Read(ctx).Query(ctx, text, s.model().Name, reembedBatch)
	if err != nil {
		return nil, fmt.Errorf("find facts to embed again: %w", err)
	}
	err = scanAll(rows, func(rows *sql.Rows) error {
		var f staleFact
		err := rows.Scan(&f.org, &f.id, &f.text)
		out = append(out, f)
		return err
	})
	return out, err
}
