package memory

import "context"

// Compared has the features of a passage for a query: keyword, whole, word and rare, which the ranking mixes.
type Compared struct {
	CallID   string
	Features [4]float64
}

// Mix has the weights of the features.
var Mix = [4]float64{mixKeyword, mixWhole, mixWord, mixRare}

// Compare returns the features of the passages that a search ranks.
func (s *Service) Compare(ctx context.Context, org, text string) ([]Compared, error) {
	in := s.defaults(Query{Text: text})
	q, err := s.question(ctx, in)
	if err != nil {
		return nil, err
	}
	rows, err := s.rows(ctx, org, in, q)
	if err != nil {
		return nil, err
	}
	order := q.rank(rows)
	items, err := s.items(ctx, org, order)
	if err != nil {
		return nil, err
	}
	var out []Compared
	for _, r := range order {
		out = append(out, Compared{items[r.key].callID, [4]float64{r.keyword, r.whole, r.word, r.rare}})
	}
	return out, nil
}

// WithCall returns the prepared passages as those of another call: for measurements, because preparing each call
// would take longer than the measured operation.
func (l PreparedCall) WithCall(c Call) PreparedCall {
	l.call = c
	return l
}

// Recall returns the share of the hundred nearest passages by all estimates that the scan finds, which estimates only
// a few.
func (s *Service) Recall(ctx context.Context, org, text string) (float64, error) {
	in := s.defaults(Query{Text: text})
	q, err := s.question(ctx, in)
	if err != nil {
		return 0, err
	}
	x, err := s.indexOf(ctx, org)
	if err != nil || x.codes == nil {
		return 1, err
	}
	f := filterOf(in)
	got := map[int32]bool{}
	for _, h := range x.nearest(q.vector, f, nearCandidates) {
		got[h.at] = true
	}
	p, best := x.codes.probe(q.vector), newTopK(100)
	x.scan(&p, f, best, 0, x.codes.len(), 64*x.codes.words)
	kept, all := 0, best.best()
	for _, h := range all {
		if got[h.at] {
			kept++
		}
	}
	return float64(kept) / float64(max(len(all), 1)), nil
}

// SetPassageLimits sets the maximum of words per passage (the minimum is six tenths of it), and the words repeated
// from the passage before.
func (s *Service) SetPassageLimits(words, overlap int) {
	s.limits = passageLimits{minWords: words * 6 / 10, maxWords: words, minRest: words / 5, overlap: overlap}
}

// DefaultLimits has the arguments of SetPassageLimits for the default.
var DefaultLimits = [2]int{defaultLimits.maxWords, defaultLimits.overlap}

// SetLargeFrom sets the number of passages from which an organisation is large.
func (s *Service) SetLargeFrom(passages int) {
	s.dbIndexes.mu.Lock()
	defer s.dbIndexes.mu.Unlock()
	s.dbIndexes.largeFrom = passages
}

// BuildLargeIndexes creates the indexes of large organisations in the database.
func (s *Service) BuildLargeIndexes(ctx context.Context) error { return s.buildLargeIndexes(ctx) }

// UsesDatabaseIndex reports whether an organisation is searched in the database.
func (s *Service) UsesDatabaseIndex(ctx context.Context, org string) (bool, error) {
	return s.usesDatabaseIndex(ctx, org)
}
