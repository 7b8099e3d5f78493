package memory

import "context"

// Compared is how a passage of a call compares with a query: keyword, whole, word and rare, which the ranking mixes.
type Compared struct {
	CallID   string
	Features [4]float64
}

// Mix is how the ranking mixes them.
var Mix = [4]float64{mixKeyword, mixWhole, mixWord, mixRare}

// Compare gives the features of the passages a search ranks.
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
