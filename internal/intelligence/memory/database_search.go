package memory

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/visibility"
)

// Search with the indexes in the database.

// wordStatistics holds the word frequencies of an organisation's passages, for the words queried so far; frequent
// words are estimated from a sample.
type wordStatistics struct {
	asOf           time.Time
	passages       int
	average        float64 // words per passage
	sample         map[Term]int
	sampled        int
	passagesByTerm map[Term]int // passages with a word, for words that are rare in the sample
}

const (
	wordStatsSample = 2000 // newest passages in the sample
	rareInSample    = 20   // a word in fewer of them is counted exactly
)

// databaseRows reads the candidates from the database, as an in-memory index would select them. Its statements are
// planned for the actual organisation, because only such a plan uses the organisation's index.
func (s *Service) databaseRows(ctx context.Context, org string, in Query, q *question, near, byWord int) ([]row, error) {
	picked := map[int64]bool{}
	err := s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		const set = `SELECT set_config('hnsw.ef_search', $1, true), set_config('hnsw.iterative_scan', 'relaxed_order', true),
			set_config('hnsw.max_scan_tuples', '200000', true), set_config('plan_cache_mode', 'force_custom_plan', true)`
		var a, b, c, d string
		if err := tx.QueryRow(ctx, set, strconv.Itoa(min(near, 1000))).Scan(&a, &b, &c, &d); err != nil {
			return err
		}
		t, err := s.wordStatisticsOf(ctx, tx, org, q.terms)
		if err != nil {
			return err
		}
		if err := s.addSimilarOfDatabase(ctx, tx, org, q); err != nil {
			return fmt.Errorf("similar words in the database: %w", err)
		}
		if len(q.similar) > 0 {
			if t, err = s.wordStatisticsOf(ctx, tx, org, q.searchTerms()); err != nil {
				return err
			}
		}
		q.rarities = t.rarities(q.searchTerms())
		for _, table := range searchedTables {
			if err := table.near(ctx, tx, org, in, q, near, picked); err != nil {
				return fmt.Errorf("nearest in the database: %w", err)
			}
			if err := table.byWords(ctx, tx, org, in, t.lookupTerms(q), byWord, picked); err != nil {
				return fmt.Errorf("words in the database: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s.passageRows(ctx, org, slices.Sorted(maps.Keys(picked)))
}

// searchedTable has the statements for one table that is searched in the database.
type searchedTable struct {
	nearest, words string
	shown          func(v visibility.View, user string) string
}

// Filters of a search, with the parameters of filterArgs. Facts have no agents, queues or directions.
const (
	passageFilter = ` AND at >= $3 AND at < $4 AND ($5 = '' OR strpos($5, ',' || kind || ',') > 0)
		AND ($6 = '' OR agent_id = $6) AND ($7 = '' OR queue_id = $7) AND ($8 = '' OR direction = $8)`
	factFilter = ` AND created_at >= $3 AND created_at < $4 AND ($5 = '' OR strpos($5, ',' || kind || ',') > 0) AND $6 = '' AND $7 = '' AND $8 = ''`
)

var searchedTables = []searchedTable{
	{`SELECT key FROM memory_vectors WHERE org_id = $1 AND model = $9` + passageFilter, `SELECT key FROM memory_vectors WHERE org_id = $1` +
		passageFilter, passagesShown},
	{`SELECT key FROM memory_facts WHERE org_id = $1 AND model = $9 AND key IS NOT NULL` + factFilter,
		`SELECT key FROM memory_facts WHERE org_id = $1 AND key IS NOT NULL` + factFilter, factsShown},
}

// near adds the k nearest passages by vector.
func (t searchedTable) near(ctx context.Context, tx db.Querier, org string, in Query, q *question, k int, picked map[int64]bool) error {
	if len(q.vector) == 0 {
		return nil
	}
	text := t.nearest + t.shown(in.view, "$11") + fmt.Sprintf(` ORDER BY %s <=> $2::text::halfvec(%d) LIMIT $10`,
		vectorExpression(len(q.vector)), len(q.vector))
	args := userArg(in.view, append(filterArgs(org, in, vectorText(q.vector)), q.model.Name, k)...)
	return addKeys(ctx, tx, picked, text, args...)
}

// byWords adds the k passages with the highest total rarity of the words that they share with the query.
func (t searchedTable) byWords(ctx context.Context, tx db.Querier, org string, in Query, words []weightedTerm, k int,
	picked map[int64]bool) error {
	if len(words) == 0 {
		return nil
	}
	parts, statement := make([]string, len(words)), t.words+t.shown(in.view, "$10")
	for i, w := range words { // numbers only, no external text
		parts[i] = fmt.Sprintf(`(%s AND memory_words(terms) @> ARRAY[%d::bigint] LIMIT %d)`, strings.Replace(statement, "SELECT key",
			fmt.Sprintf("SELECT key, %f AS idf", w.idf), 1), w.term, maxListed)
	}
	text := `SELECT key FROM (` + strings.Join(parts, " UNION ALL ") +
		`) AS x WHERE $2 = '' GROUP BY key ORDER BY sum(idf) DESC, key DESC LIMIT $9`
	return addKeys(ctx, tx, picked, text, userArg(in.view, append(filterArgs(org, in, ""), k)...)...)
}

// maxListed limits the passages that are read for one word.
const maxListed = 50_000

// filterArgs returns the arguments of the filters.
func filterArgs(org string, in Query, second string) []any {
	kinds := ""
	if len(in.Kinds) > 0 {
		kinds = "," + strings.Join(in.Kinds, ",") + ","
	}
	return []any{org, second, db.At(in.Since), db.At(in.Until), kinds, in.AgentID, in.QueueID, in.Direction}
}

func addKeys(ctx context.Context, tx db.Querier, picked map[int64]bool, text string, args ...any) error {
	rows, err := tx.Query(ctx, text, args...)
	if err != nil {
		return err
	}
	return scanAll(rows, func(rows *sql.Rows) error {
		var key int64
		err := rows.Scan(&key)
		picked[key] = true
		return err
	})
}

// vectorText returns a vector in the text format of pgvector.
func vectorText(v []float32) string {
	b := []byte{'['}
	for i, x := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, float64(x), 'g', 6, 32)
	}
	return string(append(b, ']'))
}

// wordStatisticsOf returns the statistics for the words of a query, and reads those that are missing.
func (s *Service) wordStatisticsOf(ctx context.Context, tx db.Querier, org string, terms []Term) (wordStatistics, error) {
	s.dbIndexes.mu.Lock()
	known := s.dbIndexes.wordStats[org]
	s.dbIndexes.mu.Unlock()
	t := wordStatistics{passagesByTerm: map[Term]int{}}
	if known != nil && time.Since(known.asOf) < wordStatsTTL {
		t = *known
		t.passagesByTerm = maps.Clone(known.passagesByTerm)
	} else if err := t.load(ctx, tx, org); err != nil {
		return t, fmt.Errorf("count passages: %w", err)
	}
	for _, w := range terms {
		if _, ok := t.passagesByTerm[w]; ok || t.sample[w] >= rareInSample {
			continue
		}
		var n int
		const text = `SELECT count(*) FROM memory_vectors WHERE org_id = $1 AND memory_words(terms) @> ARRAY[$2::bigint]`
		if err := tx.QueryRow(ctx, text, org, int64(w)).Scan(&n); err != nil {
			return t, fmt.Errorf("count passages with a word: %w", err)
		}
		t.passagesByTerm[w] = n
	}
	s.dbIndexes.mu.Lock()
	defer s.dbIndexes.mu.Unlock()
	if s.dbIndexes.wordStats == nil {
		s.dbIndexes.wordStats = map[string]*wordStatistics{}
	}
	s.dbIndexes.wordStats[org] = &t
	return t, nil
}

// load counts the passages and reads the sample.
func (t *wordStatistics) load(ctx context.Context, tx db.Querier, org string) error {
	t.asOf, t.sample = time.Now(), map[Term]int{}
	if err := tx.QueryRow(ctx, `SELECT count(*) FROM memory_vectors WHERE org_id = $1`, org).Scan(&t.passages); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, `SELECT terms FROM memory_vectors WHERE org_id = $1 ORDER BY key DESC LIMIT $2`, org, wordStatsSample)
	if err != nil {
		return err
	}
	words := 0
	err = scanAll(rows, func(rows *sql.Rows) error {
		var b sql.RawBytes
		if err := rows.Scan(&b); err != nil {
			return err
		}
		for _, c := range decodeTerms(b) {
			t.sample[c.term]++
			words += int(c.count)
		}
		t.sampled++
		return nil
	})
	t.average = float64(words) / float64(max(t.sampled, 1))
	return err
}

// passagesWith returns the number of passages with a word: counted, or estimated from the sample if the word is
// frequent.
func (t *wordStatistics) passagesWith(w Term) int {
	if n, ok := t.passagesByTerm[w]; ok {
		return n
	}
	return t.sample[w] * t.passages / max(t.sampled, 1)
}

func (t *wordStatistics) rarities(terms []Term) rarities {
	r := rarities{idf: map[Term]float64{}, average: t.average}
	for _, w := range terms {
		r.idf[w] = rarity(t.passagesWith(w), max(t.passages, t.passagesWith(w)))
	}
	return r
}

// weightedTerm is a word of a query with its rarity.
type weightedTerm struct {
	term Term
	idf  float64
}

// lookupTerms returns the words of a query by which passages are looked up: all except the most common, as with an
// in-memory index.
func (t *wordStatistics) lookupTerms(q *question) (all []weightedTerm) {
	for _, w := range q.searchTerms() {
		if n := t.passagesWith(w); n <= commonFrom || n <= t.passages/commonShare {
			all = append(all, weightedTerm{w, q.idf[w]})
		}
	}
	return all
}
