package memory

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"soniq/internal/platform/db"
	"soniq/internal/platform/fuzzy"
)

// Words of passages that are spelled or sound like a word of the query. The index has hashes of words only, so that the spellings that a
// word may have are looked up in it.

// similarTerm is a word of passages that is similar to one of the query.
type similarTerm struct {
	own       int     // index of the query's word
	closeness float64 // 0 to 1
}

// Limits of similar words.
const (
	maxSimilarWords = 8 // for each word of the query, the closest
	maxSpelledWords = 3 // words of a query that are compared
)

// presence returns those of some words that an organisation's passages have.
type presence func([]Term) map[Term]bool

// addSimilar finds the words that are similar to words of the query: to those that the lexicon does not have, which are names for the
// most part, in any way. A word of the lexicon may be a name as well. Names that sound like it are similar to it if it is the whole
// query, or has a capital inside a query.
func (q *question) addSimilar(present presence) {
	compared := 0
	all := wordsOfQuery(q.text)
	for i, written := range all {
		w := strings.ToLower(written)
		own := slices.Index(q.terms, firstTerm(q.lexicon, w))
		if own < 0 || compared == maxSpelledWords {
			continue
		}
		known := q.isInLexicon(q.terms[own])
		named := len(all) == 1 || i > 0 && w != written
		name, ok := fuzzy.New(w)
		if !ok || known && !named {
			continue
		}
		compared++
		spelled := spellings{of: map[Term]string{}}
		fuzzy.Spellings(w, func(s string) {
			if t := firstTerm(q.lexicon, s); t != 0 && !slices.Contains(q.terms, t) && (!known || fuzzy.SoundAlike(w, s)) {
				spelled.add(t, s)
			}
		})
		q.keepClosest(own, name, spelled, present)
	}
}

// spellings are the words that a word of the query may be, the likeliest first.
type spellings struct {
	terms []Term
	of    map[Term]string
}

func (s *spellings) add(t Term, text string) {
	if s.of[t] == "" {
		s.terms, s.of[t] = append(s.terms, t), text
	}
}

// keepClosest adds the closest of the spellings that passages have.
func (q *question) keepClosest(own int, name fuzzy.Name, spelled spellings, present presence) {
	type found struct {
		term     Term
		distance int
	}
	var near []found
	for t := range present(spelled.terms) {
		if d, ok := name.Distance(spelled.of[t]); ok {
			near = append(near, found{t, d})
		}
	}
	slices.SortFunc(near, func(a, b found) int { return cmp.Or(a.distance-b.distance, cmp.Compare(a.term, b.term)) })
	for _, f := range near[:min(len(near), maxSimilarWords)] {
		if q.similar == nil {
			q.similar = map[Term]similarTerm{}
		}
		if closeness := closenessOf(f.distance); closeness > q.similar[f.term].closeness {
			q.similar[f.term] = similarTerm{own, closeness}
		}
	}
}

// closenessOf returns what a similar word counts, by its distance. A word that only differs in marks has 0.
func closenessOf(distance int) float64 { return max(0.95-0.12*float64(distance), 0.5) }

func (q *question) isInLexicon(t Term) bool {
	v, _ := q.lexicon.Vector(t)
	return v != nil
}

// searchTerms returns the words to look passages up by: those of the query, and similar ones.
func (q *question) searchTerms() []Term {
	all := slices.Clone(q.terms)
	for t := range q.similar {
		all = append(all, t)
	}
	slices.Sort(all[len(q.terms):])
	return all
}

// wordsOfQuery returns the words of a text.
func wordsOfQuery(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '\'' })
}

// firstTerm returns the term of a word; 0 if it has none.
func firstTerm(l Lexicon, word string) Term {
	if t := l.Terms(word); len(t) == 1 {
		return t[0]
	}
	return 0
}

// presentIn returns the presence of words in some passages.
func presentIn(rows []row) presence {
	all := map[Term]bool{}
	for _, r := range rows {
		for _, t := range r.terms {
			all[t.term] = true
		}
	}
	return func(terms []Term) map[Term]bool { return whichOf(terms, func(t Term) bool { return all[t] }) }
}

// present returns those of some words that the index has.
func (x *index) present(terms []Term) map[Term]bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return whichOf(terms, func(t Term) bool { return x.words.postings[t] != nil })
}

func whichOf(terms []Term, has func(Term) bool) map[Term]bool {
	out := map[Term]bool{}
	for _, t := range terms {
		if has(t) {
			out[t] = true
		}
	}
	return out
}

// Limits of the lookup of spellings in the database.
const (
	maxLookedUp            = 3000 // spellings of a word
	maxPassagesOfSpellings = 200  // passages that are read to learn which spellings there are
)

// addSimilarOfDatabase is addSimilar for an organisation whose passages are searched in the database.
func (s *Service) addSimilarOfDatabase(ctx context.Context, tx db.Querier, org string, q *question) (err error) {
	q.addSimilar(func(terms []Term) map[Term]bool {
		terms = terms[:min(len(terms), maxLookedUp)]
		asked := map[Term]bool{}
		for _, w := range terms {
			asked[w] = true
		}
		out := map[Term]bool{}
		for _, table := range []string{"memory_vectors", "memory_facts"} {
			if e := termsOfPassages(ctx, tx, org, table, terms, func(w Term) { out[w] = out[w] || asked[w] }); e != nil {
				err = e
			}
		}
		return whichOf(terms, func(w Term) bool { return out[w] })
	})
	return err
}

// termsOfPassages calls each for the words of passages that have at least one of some words. The list of words stands in a subquery,
// because the planner expects a list of thousands of constants to be in every passage, and then reads passages instead of the index.
func termsOfPassages(ctx context.Context, tx db.Querier, org, table string, terms []Term, each func(Term)) error {
	if len(terms) == 0 {
		return nil
	}
	list := make([]string, len(terms))
	for i, w := range terms {
		list[i] = strconv.FormatUint(uint64(w), 10)
	}
	text := fmt.Sprintf(`SELECT terms FROM %s WHERE org_id = $1 AND memory_words(terms) && (SELECT $2::text::bigint[]) LIMIT %d`,
		table, maxPassagesOfSpellings)
	rows, err := tx.Query(ctx, text, org, "{"+strings.Join(list, ",")+"}")
	if err != nil {
		return err
	}
	return scanAll(rows, func(rows *sql.Rows) error {
		var b sql.RawBytes
		if err := rows.Scan(&b); err != nil {
			return err
		}
		for _, c := range decodeTerms(b) {
			each(c.term)
		}
		return nil
	})
}
