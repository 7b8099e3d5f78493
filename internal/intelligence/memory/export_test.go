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
func (l Lesson) As(c Call) Lesson {
	l.call = c
	return l
}

// Recall returns the share of the hundred nearest passages by all estimates that the scan finds, which estimates only
// a few.
func (s *Service) Kept(ctx context.Context, org, text string) (float64, error) {
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
	p, best := x.codes.probe(q.vector), newTop(100)
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
func (s *Service) Cut(words, overlap int) {
	s.cut = cut{from: words * 6 / 10, to: words, rest: words / 5, overlap: overlap}
}

// DefaultLimits has the arguments of SetPassageLimits for the default.
var UsualCut = [2]int{usual.to, usual.overlap}

// SetLargeFrom sets the number of passages from which an organisation is large.
func (s *Service) ShareFrom(passages int) {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	s.shared.from = passages
}

// BuildLargeIndexes creates the indexes of large organisations in the database.
func (s *Service) ShareLarge(ctx context.Context) error { return s.shareLarge(ctx) }

// UsesDatabaseIndex reports whether an organisation is searched in the database.
func (s *Service) IsShared(ctx context.Context, org string) (bool, error) {
	return s.isShared(ctx, org)
}
