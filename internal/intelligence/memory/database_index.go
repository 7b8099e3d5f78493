package memory

import (
	"context"
	"database/sql"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"sync"
	"time"

	"soniq/internal/platform/db"
)

// Search indexes of large organisations in PostgreSQL, if it has the extension vector (pgvector): all servers share
// them, and none loads them at start. They are expression indexes over the existing rows, one pair per organisation
// and table. So every insert, deletion and re-embedding updates them within its transaction, on any server, and a
// search reads passages of one organisation only. Decision 0016.

// Location of the indexes of large organisations.
const (
	IndexAuto     = "auto"     // in PostgreSQL if it has the extension vector, else in each process
	IndexProcess  = "process"  // in each process
	IndexDatabase = "database" // in PostgreSQL; the extension is created if it does not exist
)

// largeFrom is the number of passages from which an organisation is large. Smaller ones are searched faster in the
// process, where they take 10 MB at most.
const largeFrom = 20_000

// maxIndexDimensions is the limit of pgvector for the dimensions of an index.
const maxIndexDimensions = 4000

// databaseIndexes is the state of the indexes in the database.
type databaseIndexes struct {
	mu        sync.Mutex // guards the fields below
	enabled   bool
	largeFrom int // number of passages of a large organisation
	valid     map[string]bool
	checkedAt time.Time
	wordStats map[string]*wordStatistics // by organisation
}

// Validity of information read from the database.
const (
	indexListTTL = time.Minute
	wordStatsTTL = 10 * time.Minute
)

// EnableDatabaseIndexes enables search in the database for large organisations, if mode (IndexAuto, IndexProcess,
// IndexDatabase) and the database allow it. on reports whether it is enabled. Run creates the indexes in the
// background. With IndexDatabase it returns an error if the database does not support them.
func (s *Service) EnableDatabaseIndexes(ctx context.Context, how string) (on bool, err error) {
	if how == IndexProcess || s.db.Name() != "postgres" {
		if how == IndexDatabase {
			return false, fmt.Errorf("an index in the database needs PostgreSQL")
		}
		return false, nil
	}
	if how == IndexDatabase {
		if _, err := s.db.Read(ctx).Exec(ctx, `CREATE EXTENSION IF NOT EXISTS vector`); err != nil {
			return false, fmt.Errorf("give the database the extension vector (pgvector): %w", err)
		}
	}
	var version string
	err = s.db.Read(ctx).QueryRow(ctx, `SELECT extversion FROM pg_extension WHERE extname = 'vector'`).Scan(&version)
	if err != nil && !db.IsNone(err) {
		return false, fmt.Errorf("look for the extension vector: %w", err)
	}
	if !atLeast(version, 0, 8) {
		if how == IndexDatabase {
			return false, fmt.Errorf("pgvector %s is too old: 0.8 is needed", version)
		}
		return false, nil
	}
	if err := s.db.Tx(ctx, createFunctions); err != nil {
		return false, fmt.Errorf("prepare the database for memory: %w", err)
	}
	s.dbIndexes.mu.Lock()
	defer s.dbIndexes.mu.Unlock()
	s.dbIndexes.enabled, s.dbIndexes.largeFrom = true, largeFrom
	return true, nil
}

// atLeast compares the first two numbers of a version.
func atLeast(version string, major, minor int) bool {
	first, rest, _ := strings.Cut(version, ".")
	second, _, _ := strings.Cut(rest, ".")
	a, err := strconv.Atoi(first)
	b, err2 := strconv.Atoi(second)
	return err == nil && err2 == nil && (a > major || a == major && b >= minor)
}

// createFunctions creates the functions of the index expressions: the numbers of a vector if it has n of them, else
// NULL, and the words of a passage. Their declared cost is high, so that no plan evaluates them row by row.
func createFunctions(tx db.Querier) error {
	for _, q := range []string{
		`SELECT pg_advisory_xact_lock(7266448)`, // serialises servers that start at once
		`CREATE OR REPLACE FUNCTION memory_numbers(v bytea, n int) RETURNS real[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 5000 AS
			'SELECT array_agg(((get_byte(v, i) + 128) % 256 - 128)::real ORDER BY i) FROM generate_series(4, length(v) - 1) AS i
				WHERE length(v) = n + 4'`,
		`CREATE OR REPLACE FUNCTION memory_words(t bytea) RETURNS bigint[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 5000 AS
			'SELECT array_agg(get_byte(t, i) + get_byte(t, i + 1) * 256 + get_byte(t, i + 2) * 65536
				+ get_byte(t, i + 3)::bigint * 16777216)
				FROM generate_series(0, length(t) - 5, 5) AS i'`,
	} {
		if _, err := tx.Exec(context.Background(), q); err != nil {
			return err
		}
	}
	return nil
}

// databaseIndex is an index of an organisation in the database.
type databaseIndex struct{ name, create string }

// databaseIndexesOf returns the indexes of an organisation and a model. Queries have to use the same expressions.
func databaseIndexesOf(org string, m Model) []databaseIndex {
	var all []databaseIndex
	for _, table := range []string{"memory_vectors", "memory_facts"} {
		of := fmt.Sprintf("ON %s USING ", table)
		all = append(all, databaseIndex{databaseIndexName(table, org, ""), of + `gin (memory_words(terms)) WHERE org_id = ` +
			quoteLiteral(org)}, databaseIndex{databaseIndexName(table, org, m.Name, strconv.Itoa(m.Dimensions)),
			of + fmt.Sprintf(`hnsw ((%s) halfvec_cosine_ops) WHERE org_id = %s AND model = %s`,
				vectorExpression(m.Dimensions), quoteLiteral(org), quoteLiteral(m.Name))})
	}
	return all
}

// vectorExpression returns the expression of a row's vector in the indexes.
func vectorExpression(dimensions int) string {
	return fmt.Sprintf(`memory_numbers(vector, %d)::halfvec(%d)`, dimensions, dimensions)
}

// databaseIndexPrefix begins the names of all these indexes.
const databaseIndexPrefix = "memory_near_"

func databaseIndexName(parts ...string) string {
	h := fnv.New64a()
	h.Write([]byte(strings.Join(parts, "\x00")))
	return databaseIndexPrefix + strconv.FormatUint(h.Sum64(), 36)
}

// quoteLiteral quotes a text for a statement that takes no parameters.
func quoteLiteral(text string) string {
	return `'` + strings.ReplaceAll(strings.ReplaceAll(text, `\`, ``), `'`, `''`) + `'`
}

// indexable reports whether the vectors of a model can be indexed in the database.
func (m Model) indexable() bool {
	return m.Name != "" && m.Dimensions > 0 && m.Dimensions <= maxIndexDimensions
}

// usesDatabaseIndex reports whether an organisation is searched in the database: all its indexes exist and are valid.
func (s *Service) usesDatabaseIndex(ctx context.Context, org string) (bool, error) {
	m := s.model()
	if !m.indexable() {
		return false, nil
	}
	valid, err := s.knownIndexes(ctx)
	if err != nil {
		return false, err
	}
	for _, x := range databaseIndexesOf(org, m) {
		if !valid[x.name] {
			return false, nil
		}
	}
	return true, nil
}

// knownIndexes returns the indexes in the database, at most a minute old.
func (s *Service) knownIndexes(ctx context.Context) (map[string]bool, error) {
	s.dbIndexes.mu.Lock()
	on, valid, looked, now := s.dbIndexes.enabled, s.dbIndexes.valid, s.dbIndexes.checkedAt, time.Now()
	if on && now.Sub(looked) > indexListTTL && valid != nil {
		s.dbIndexes.checkedAt = now // other goroutines use the known state meanwhile
	}
	s.dbIndexes.mu.Unlock()
	if !on || valid != nil && now.Sub(looked) <= indexListTTL {
		return valid, nil
	}
	valid, err := validIndexes(ctx, s.db.Read(ctx))
	if err != nil {
		return nil, err
	}
	s.dbIndexes.mu.Lock()
	defer s.dbIndexes.mu.Unlock()
	s.dbIndexes.valid, s.dbIndexes.checkedAt = valid, now
	return valid, nil
}

// validIndexes returns the indexes in the database by name; false for one that is being built, or whose build failed.
func validIndexes(ctx context.Context, q db.Querier) (map[string]bool, error) {
	const text = `SELECT c.relname, i.indisvalid FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
		WHERE c.relnamespace = current_schema()::regnamespace AND starts_with(c.relname::text, $1)`
	rows, err := q.Query(ctx, text, databaseIndexPrefix)
	if err != nil {
		return nil, fmt.Errorf("list indexes of memory: %w", err)
	}
	valid := map[string]bool{}
	err = scanAll(rows, func(rows *sql.Rows) error {
		var name string
		var ok bool
		err := rows.Scan(&name, &ok)
		valid[name] = ok
		return err
	})
	return valid, err
}

// buildLargeIndexes creates the missing indexes of large organisations and drops those no longer needed. Until an
// index exists, its organisation is searched in the process.
func (s *Service) buildLargeIndexes(ctx context.Context) error {
	m := s.model()
	s.dbIndexes.mu.Lock()
	on, from := s.dbIndexes.enabled, s.dbIndexes.largeFrom
	s.dbIndexes.mu.Unlock()
	if on && m.Name != "" && m.Dimensions == 0 { // a remote model without a response yet
		s.needsEmbedding.Store(true)
	}
	if !on || !m.indexable() {
		return nil
	}
	there, err := validIndexes(ctx, s.db.Read(ctx))
	if err != nil {
		return err
	}
	large, err := largeOrgs(ctx, s.db.Read(ctx), from/2)
	if err != nil {
		return fmt.Errorf("find large organisations: %w", err)
	}
	wanted, made := map[string]bool{}, false
	for org, passages := range large {
		for _, x := range databaseIndexesOf(org, m) {
			wanted[x.name] = true
			valid, begun := there[x.name]
			if valid || !begun && passages < from {
				continue
			}
			if err := s.buildIndex(ctx, x, begun); err != nil {
				return fmt.Errorf("index memory of %s: %w", org, err)
			}
			made = true
		}
	}
	for name := range there {
		if !wanted[name] {
			if _, err := s.db.Read(ctx).Exec(ctx, `DROP INDEX CONCURRENTLY IF EXISTS `+name); err != nil {
				return fmt.Errorf("drop index of memory: %w", err)
			}
		}
	}
	if made { // the planner needs statistics of the expressions to use their indexes
		for _, table := range []string{"memory_vectors", "memory_facts"} {
			if _, err := s.db.Read(ctx).Exec(ctx, `ANALYZE `+table); err != nil {
				return fmt.Errorf("analyse memory: %w", err)
			}
		}
	}
	s.dbIndexes.mu.Lock()
	defer s.dbIndexes.mu.Unlock()
	s.dbIndexes.checkedAt = time.Time{}
	return nil
}

// buildIndex creates an index without blocking writers, and creates it again after a failed build. If another server
// is building it, it does nothing.
func (s *Service) buildIndex(ctx context.Context, x databaseIndex, again bool) error {
	q := s.db.Read(ctx)
	if again {
		var busy bool
		const making = `SELECT EXISTS (SELECT 1 FROM pg_stat_progress_create_index p JOIN pg_class c ON c.oid = p.index_relid WHERE c.relname = $1)`
		if err := q.QueryRow(ctx, making, x.name).Scan(&busy); err != nil || busy {
			return err
		}
		if _, err := q.Exec(ctx, `DROP INDEX CONCURRENTLY IF EXISTS `+x.name); err != nil {
			return err
		}
	}
	_, err := q.Exec(ctx, `CREATE INDEX CONCURRENTLY IF NOT EXISTS `+x.name+` `+x.create)
	return err
}

// largeOrgs returns the organisations with at least so many passages.
func largeOrgs(ctx context.Context, q db.Querier, least int) (map[string]int, error) {
	// tenant: the indexes of all organisations are looked after
	const text = `SELECT org_id, count(*) FROM memory_vectors GROUP BY org_id HAVING count(*) >= $1`
	rows, err := q.Query(ctx, text, least)
	if err != nil {
		return nil, err
	}
	all := map[string]int{}
	err = scanAll(rows, func(rows *sql.Rows) error {
		var org string
		var n int
		err := rows.Scan(&org, &n)
		all[org] = n
		return err
	})
	return all, err
}
